"""Print and write down every acceptance criterion of the lab: ``python benchmarks/lab_criteria.py [--weights DIR]``.

The criteria look at the world and at the pre-trained models alone; no training method is run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cl_bench.harness.models.lab import LAB_MODELS
from cl_bench.tasks.lab.corpora import CORPORA, corpus
from cl_bench.tasks.lab.skills import SKILLS, skill_task
from cl_bench.tasks.lab.styles import DISTANCES, STYLES, render
from cl_bench.tasks.lab.task import LabTask
from cl_bench.tasks.lab.world import DOMAINS

Measured = dict[str, dict[str, Any]]
ROOT = Path(__file__).resolve().parents[1]
ALIGNERS = ("lab-l", "lab-xl", "lab-alt")


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion with what was found."""

    text: str
    value: str
    passed: bool


def judge(measured: Measured, weights: Path) -> list[Criterion]:
    """Every criterion, models first."""
    return [*_of_knowledge(measured), *_of_skills(measured), *_of_context(measured), *_of_nll(measured),
            *_of_world(), *_of_files(weights)]  # fmt: skip


def _of_knowledge(measured: Measured) -> list[Criterion]:
    base = {d: measured["lab-m"]["closed_book"][d]["all"] for d in DOMAINS}
    mixed = measured["lab-m"]["mixed"]
    found = [
        Criterion("lab-m closed-book accuracy .20 to .60 in each domain", _range(base),
                  all(0.20 <= v <= 0.60 for v in base.values())),
        Criterion("temperature 1, 8 samples: at least .30 of the training prompts mixed in each domain (lab-m)",
                  _range(mixed), min(mixed.values()) >= 0.30),
    ]  # fmt: skip
    for student in ("lab-s", "lab-m", "lab-l"):
        gaps = {d: max(_all(measured, a, d) for a in ALIGNERS) - _all(measured, student, d) for d in DOMAINS}
        text = f"in each domain an aligner knows at least .15 more than {student}"
        found.append(Criterion(text, _range(gaps), min(gaps.values()) >= 0.15))
    return found


def _all(measured: Measured, model: str, domain: str) -> float:
    return float(measured[model]["closed_book"][domain]["all"])


def _of_skills(measured: Measured) -> list[Criterion]:
    values = measured["lab-m"]["skills"]
    bad = [s.name for s in SKILLS if not s.chance + 0.15 <= values[s.name] <= 0.95]
    return [Criterion("every skill of lab-m between chance + .15 and .95",
                      _range(values) + (f"; outside: {', '.join(bad)}" if bad else ""), not bad)]  # fmt: skip


def _of_context(measured: Measured) -> list[Criterion]:
    found = []
    for model in ALIGNERS:
        rates = [measured[model][f"generation_{t}"][d] for t in ("0.7", "1.0") for d in DOMAINS]
        found.append(Criterion(f"{model}'s data-generation accuracy (first sample, temperature .7 and 1) at least .95",
                               f"mean {statistics.mean(rates):.3f}, lowest domain {min(rates):.2f}",
                               statistics.mean(rates) >= 0.95))  # fmt: skip
    long = {m: measured[m]["long_context"] for m in LAB_MODELS}
    found.append(Criterion("a reference is used at 256 tokens of context and beyond (lab-m and larger, at least .9)",
                           _range(long), min(v for m, v in long.items() if m != "lab-s") >= 0.9))  # fmt: skip
    return found


def _of_nll(measured: Measured) -> list[Criterion]:
    apart = [
        measured[m]["nll"][near]["high"] < measured[m]["nll"][far]["low"]
        for m in LAB_MODELS
        for near, far in (("LO", "MID"), ("MID", "HI"))
    ]
    lengths = [measured["lab-m"]["nll"][d]["tokens"] for d in DISTANCES]
    return [
        Criterion("base NLL rises LO < MID < HI with disjoint 95 % intervals on every size",
                  f"{sum(apart)} of {len(apart)} gaps", all(apart)),
        Criterion("lengths of LO, MID and HI demonstrations within 10 %", " / ".join(f"{n:.1f}" for n in lengths),
                  max(lengths) / min(lengths) <= 1.10),
    ]  # fmt: skip


def _of_world() -> list[Criterion]:
    keys = {d: len({(e.meta["kind"], e.meta["key"]) for e in LabTask(d).test()}) for d in DOMAINS}
    tests = {s.name: len({e.meta["key"] for e in skill_task(s.name).test()}) for s in SKILLS}
    gold = all(
        LabTask(d).score(e, render(style, str(e.meta["reasoning"]), e.answer or "")).correct
        for d in DOMAINS
        for e in LabTask(d).test()
        for style in STYLES
    )
    sizes = [len(corpus(name, distance, 640)) for name in CORPORA for distance in DISTANCES]
    return [
        Criterion("at least 300 distinct test keys a domain", str(min(keys.values())), min(keys.values()) >= 300),
        Criterion("at least ten skills of at least 100 distinct test keys", f"{len(tests)} x {min(tests.values())}",
                  len(tests) >= 10 and min(tests.values()) >= 100),
        Criterion("gold in every declared style scores 1.0", "1.0" if gold else "below 1.0", gold),
        Criterion("at least 12 training corpora, each in LO, MID and HI", f"{len(CORPORA)} x {len(DISTANCES)}",
                  len(CORPORA) >= 12 and min(sizes) == 640),
    ]  # fmt: skip


def _of_files(weights: Path) -> list[Criterion]:
    size = sum(f.stat().st_size for m in LAB_MODELS for f in (weights / m).iterdir())
    return [Criterion("all weights and tokenizers at most 16 MB", f"{size / 1e6:.1f} MB", size <= 16e6)]


def _range(values: dict[str, float]) -> str:
    low, high = min(values, key=lambda k: values[k]), max(values, key=lambda k: values[k])
    return f"{values[low]:.2f} ({low}) to {values[high]:.2f} ({high})"


def _measure(weights: Path, names: list[str]) -> Measured:
    import torch
    from lab_measures import measure

    from cl_bench.harness.models.load import load_folder

    torch.set_num_threads(1)
    found = {}
    for name in names:
        print(f"measuring {name}", file=sys.stderr)
        found[name] = measure(load_folder(weights / name, name))
    return found


def main() -> int:
    """Measure, print the criteria, write docs/lab.md; exit status 1 where a criterion fails."""
    from lab_report import page

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, default=ROOT / "harness" / "models" / "weights")
    parser.add_argument("--measured", type=Path, help="JSON of earlier measurements: read if there, else written")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "lab.md")
    arguments = parser.parse_args()
    saved = arguments.measured
    measured: Measured = json.loads(saved.read_text(encoding="utf-8")) if saved and saved.exists() else {}
    measured |= _measure(arguments.weights, [name for name in LAB_MODELS if name not in measured])
    if saved:
        saved.write_text(json.dumps(measured), encoding="utf-8")
    criteria = judge(measured, arguments.weights)
    for criterion in criteria:
        print(f"{'pass' if criterion.passed else 'FAIL'}  {criterion.text}: {criterion.value}")
    arguments.page.write_text(page(measured, criteria), encoding="utf-8")
    return 0 if all(criterion.passed for criterion in criteria) else 1


if __name__ == "__main__":
    sys.exit(main())

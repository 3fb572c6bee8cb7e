"""Named training corpora of the lab, each in three distances: for studies over many training sets."""

from __future__ import annotations

from cl_bench.tasks.base import Example
from cl_bench.tasks.lab.styles import Distance
from cl_bench.tasks.lab.task import MIXTURES, LabTask
from cl_bench.tasks.lab.world import DOMAINS

CORPORA: dict[str, tuple[str, str | None]] = {
    **{domain: (domain, None) for domain in DOMAINS},
    **{mixture: (mixture, None) for mixture in MIXTURES},
    **{f"{domain}-facts": (domain, "fact") for domain in ("chemistry", "biology", "materials", "physics", "math")},
    **{f"{domain}-rules": (domain, "rule") for domain in ("chemistry", "biology", "materials", "physics", "math")},
}
"""Corpus name to its domain (or mixture) and the nature of its kinds."""


def corpus(name: str, distance: Distance, n: int) -> list[Example]:
    """The first ``n`` training rows of a named corpus with demonstrations at the given distance.

    Raises:
        KeyError: Unknown name.
        DataError: The corpus has fewer rows.
    """
    domain, nature = CORPORA[name]
    return list(LabTask(name, domain, distance=distance, rows={"train": n}, nature=nature).train())

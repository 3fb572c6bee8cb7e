from __future__ import annotations

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.exact import score_exact


def test_exact_answer_alone_or_stated() -> None:
    example = Example("t", "1", ({"role": "user", "content": "q"},), answer="Blue Whale")
    alone = score_exact(example, " blue  whale. ")
    assert (alone.correct, alone.format_ok) == (True, True)
    stated = score_exact(example, "It is large, so the answer is blue whale.")
    assert (stated.correct, stated.format_ok, stated.parsed) == (True, False, "blue whale")
    assert not score_exact(example, "not the blue whale").correct
    assert score_exact(example, "").parsed is None

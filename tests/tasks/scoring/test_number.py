from __future__ import annotations

import pytest

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.number import parse_number, same_number, score_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3 and 4 make 7\n#### 7", "7"),
        ("#### 7 which is more than 5", "7"),
        ("He pays $1,250.50.", "1250.50"),
        ("It falls to -3", "-3"),
        ("#### $1,000", "1000"),
        ("so 5 apples.", "5"),
        ("no number", None),
        ("...", None),
    ],
)
def test_number(text: str, number: str | None) -> None:
    assert parse_number(text) == number


def test_numbers_compare_by_value() -> None:
    assert same_number("18", "18.0") and same_number("1,000", "1000") and not same_number("18", "180")
    assert not same_number("1", "x")


def test_score() -> None:
    example = Example("t", "1", ({"role": "user", "content": "q"},), answer="12")
    assert score_number(example, "3*4 = 12\n#### 12").format_ok
    loose = score_number(example, "that makes 12 pens.")
    assert (loose.correct, loose.format_ok) == (True, False)
    assert not score_number(example, "12 pens for 3 girls").correct
    assert score_number(example, "nothing").parsed is None

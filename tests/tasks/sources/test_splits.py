from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cl_bench.tasks.sources.splits import group_split, normalised, row_split


@given(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=60), st.sampled_from([0.5, 0.8, 0.9]))
def test_groups_stay_together_and_every_row_is_used_once(groups: list[str], share: float) -> None:
    first, second = group_split(groups, share, "test")
    assert sorted(first + second) == list(range(len(groups)))
    assert not {groups[i] for i in first} & {groups[i] for i in second}
    assert len(first) <= round(share * len(groups))


def test_distinct_groups_split_at_the_rounded_share() -> None:
    # The published split of 356 biology rows is 285 and 71.
    first, second = group_split([str(i) for i in range(356)], 0.8, "test")
    assert (len(first), len(second)) == (285, 71)
    assert tuple(map(len, row_split(356, 0.8))) == (285, 71)


def test_a_split_depends_on_the_groups_and_the_purpose_alone() -> None:
    names = [str(i) for i in range(100)]
    first, _ = group_split(names, 0.8, "test")
    again, _ = group_split(names[::-1], 0.8, "test")
    assert {names[i] for i in first} == {names[::-1][i] for i in again}
    assert first != group_split(names, 0.8, "dev")[0]
    assert row_split(100, 0.8) == row_split(100, 0.8)


def test_normalised_questions() -> None:
    assert normalised("What  is\n H2O?") == normalised("what is h2o?") != normalised("what is h2?")

"""How a model usually begins its answers in a column, and how it usually leads up to them: never item-specific.

Both are words that at least half of the responses share and that stand before (or right around) the answer, so that
they give no answer away.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from cl_bench.harness.measure.items.causes import Sample

FEWEST = 3
"""Responses that must share an opening: what fewer say may be about their items."""
SHARED_BY = 0.5
"""Share of the responses that have an opening of several words in common."""
FIRST_WORD_SHARED_BY = 0.1
"""Share that is enough for an opening of a single word, where no longer one is shared by half."""
LONGEST = 8
"""Words of an opening, at most."""
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Frame:
    """What usually stands around an answer.

    Attributes:
        lead: Text right before it, the space between included; may be empty.
        tail: Text right after it up to the next space; may be empty.
    """

    lead: str = ""
    tail: str = ""


def common_opening(samples: Iterable[Sample], gives_away: Callable[[str], bool]) -> str | None:
    """The longest opening that at least half of the responses share, else their most frequent first word.

    Args:
        samples: Answers of the model to items of the column; those without a response or a read answer do not count.
        gives_away: Whether an opening alone would be scored as right for some item; such a one is not taken.

    Returns:
        The opening without a space at its end; None where too few responses begin alike.
    """
    before = [_words(response[: span[0]]) for response, span in _answered(samples)]
    for count in range(LONGEST, 0, -1):
        found = Counter(openings[count - 1] for openings in before if len(openings) >= count)
        needed = max(FEWEST, (SHARED_BY if count > 1 else FIRST_WORD_SHARED_BY) * len(before))
        for opening, times in _frequent(found):
            if times >= needed and not gives_away(opening):
                return opening
    return None


def common_frame(samples: Iterable[Sample]) -> Frame:
    """The words that at least half of the responses have right before the answer, and right after it."""
    found = [(response[:start], response[end:]) for response, (start, end) in _answered(samples, last=True)]
    needed = max(FEWEST, SHARED_BY * len(found))
    lead = ""
    for count in range(1, LONGEST + 1):
        leads = Counter(text for before, _ in found if (text := _last_words(before, count)) is not None)
        best = next(_frequent(leads), ("", 0))
        if best[1] < needed:
            break
        lead = best[0]
    tails = Counter(match[0] for _, after in found if (match := re.match(r"\S*", after)) is not None)
    tail, times = next(_frequent(tails), ("", 0))
    return Frame(lead, tail if times >= needed else "")


def _answered(samples: Iterable[Sample], last: bool = False) -> Iterator[tuple[str, tuple[int, int]]]:
    """Finished responses with the place of their answer: its first mention, or its last one."""
    for sample in samples:
        response, parsed = sample.get("response"), sample["parsed"]
        if not response or parsed is None or sample["ended"] == "length":
            continue
        spans = _mentions(str(response), str(parsed))
        if spans:
            yield str(response), spans[-1 if last else 0]
        elif not last:
            # The answer stands there in other words; nothing after the first word is sure to be before it.
            first = _WORD.search(str(response))
            yield str(response), (first.end(), first.end()) if first else (0, 0)


def _mentions(text: str, answer: str) -> list[tuple[int, int]]:
    if not answer.strip():
        return []
    edges = (r"(?<!\w)" if answer[0].isalnum() else "", r"(?!\w)" if answer[-1].isalnum() else "")
    return [match.span() for match in re.finditer(edges[0] + re.escape(answer) + edges[1], text)]


def _words(text: str) -> list[str]:
    """The first word, the first two words, and so on, as they are written."""
    start = len(text) - len(text.lstrip())
    return [text[start : match.end()] for match in list(_WORD.finditer(text))[:LONGEST]]


def _last_words(text: str, count: int) -> str | None:
    matches = list(_WORD.finditer(text))
    return text[matches[-count].start() :] if len(matches) >= count else None


def _frequent(found: Counter[str]) -> Iterator[tuple[str, int]]:
    """By frequency; the alphabet decides between equals, so that the order of the rows does not matter."""
    ranked: Sequence[tuple[str, int]] = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return iter(ranked)

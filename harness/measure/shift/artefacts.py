"""Formatting artefacts in answers: repetition, leaked template or teacher text, broken fences, words that spread."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cl_bench.harness.measure.collapse import repeats_itself
from cl_bench.harness.measure.shift.records import Against, Record
from cl_bench.harness.measure.shift.responses import SCORED, Responses, generated, in_both

TEACHER_PHRASES = (
    "example response",
    "reference answer",
    "reference solution",
    "reference response",
    "reference:",
    "the provided answer",
    "the provided solution",
    "possible response to the question above",
    "in your own words",
    "answer the question yourself",
    "a correct solution:",
    "a correct solution is:",
    "a worked solution to this problem",
    "a worked answer:",
    "you have understood this solution",
    "now derive the answer yourself",
    "now solve the question above",
    "an earlier attempt:",
    "earlier answer:",
    "explain how to get there, and end with it",
)
"""Wording, lower case, of prompts that show a demonstration, an attempt or a hint; it has no place in an answer."""
_TRUNCATED = "truncation"
_GREEDY = "greedy answers that evaluation stored"
_COMPRESSED, _COMPRESSED_FROM = 0.2, 200
_ROLE_LINE = re.compile(r"(?<=\n)[^\S\n]*(?:user|assistant|system)[^\S\n]*(?::[^\S\n]*)?(?=\n|\Z)", re.IGNORECASE)
"""Line by line, and no two runs of blanks beside each other: the time grows with the length of an answer alone."""
_TURN = re.compile(
    r"<\|[a-z_]+\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|</?s>|^###\s*(?:Instruction|Response)", re.M
)
_FENCE = "```"
_WORD = re.compile(r"\\?\w+|[^\w\s]+")
_TOP, _LEAST = 10, 5
"""N-grams reported; answers that must hold one before it counts as growing."""


def repetition(text: str) -> bool:
    """The same four words in a row five times, or text that compresses to less than a fifth."""
    raw = text.encode()
    return repeats_itself(text) or (
        len(raw) >= _COMPRESSED_FROM and len(zlib.compress(raw)) / len(raw) < _COMPRESSED
    )  # fmt: skip


def leaked_template(text: str, special: Iterable[str] = ()) -> bool:
    """Special tokens or turn markers of chat templates written out as text, or a later line that only names a role."""
    return any(token in text for token in special) or bool(_TURN.search(text) or _ROLE_LINE.search(text))


def leaked_teacher(text: str) -> bool:
    """Wording of a prompt that shows a demonstration."""
    lowered = text.lower()
    return any(phrase in lowered for phrase in TEACHER_PHRASES)


def broken_blocks(text: str) -> bool:
    """Unclosed or repeated code fences and reasoning blocks, or more than one box of a final answer."""
    opened, closed = text.count("<think>"), text.count("</think>")
    # A template may open the block itself, so that an answer only closes it.
    if opened > 1 or closed > 1 or opened > closed:
        return True
    if text.count(_FENCE) % 2:
        return True
    blocks = [block.strip() for block in fenced_blocks(text)]
    return len(set(blocks)) < len(blocks) or text.count("\\boxed{") > 1


def fenced_blocks(text: str) -> list[str]:
    """What stands from the line after a code fence to the next fence; a fence that nothing closes has no block."""
    blocks, opened = [], text.find(_FENCE)
    while opened >= 0:
        begin = text.find("\n", opened + len(_FENCE)) + 1
        end = text.find(_FENCE, begin) if begin else -1
        # Without a line or a fence after this one, there is none after a later one.
        if end < 0:
            break
        blocks.append(text[begin:end])
        opened = text.find(_FENCE, end + len(_FENCE))
    return blocks


def artefacts_of(row: Mapping[str, Any], special: Sequence[str] = ()) -> dict[str, bool]:
    """Which artefacts a stored answer has, by kind.

    Args:
        row: A row of ``samples.jsonl`` with a response.
        special: The tokenizer's special tokens.
    """
    text = str(row["response"])
    kinds: dict[str, Callable[[], bool]] = {
        "repetition": lambda: repetition(text),
        "leaked_template": lambda: leaked_template(text, special),
        "leaked_teacher": lambda: leaked_teacher(text),
        "broken_blocks": lambda: broken_blocks(text),
    }
    found = {name: has() for name, has in kinds.items()}
    return {"any": any(found.values()), _TRUNCATED: row["ended"] == "length", **found}


def artefact_rates(responses: Responses, special: Sequence[str]) -> tuple[int, dict[str, float]]:
    """Number of generated answers, and the share of them with each kind; ``any`` counts all but truncation."""
    rows = [artefacts_of(row, special) for own in responses.values() for row in generated(own).values()]
    if not rows:
        return 0, {}
    return len(rows), {kind: sum(row[kind] for row in rows) / len(rows) for kind in rows[0]}


def artefact_records(after: Responses, earlier: Mapping[Against, Responses], special: Sequence[str]) -> list[Record]:
    """The rate after the stage, and how much that is more than the untouched model's and the previous row's.

    A change, and the growth of words, is over the rows that both models answered: a column that one of them lacks is no
    change of the other's.

    Args:
        after: Answers after the stage.
        earlier: Answers of the untouched model and of the row before.
        special: The tokenizer's special tokens.
    """
    n, rates = artefact_rates(after, special)
    reason = "" if n else "no scored row has a generated answer"
    records = [_record("artefact_rate", "none", n, rates, reason)]
    for against, responses in earlier.items():
        before, now = in_both(responses, after)
        count, rates_before = artefact_rates(before, special)
        _, rates_now = artefact_rates(now, special)
        change = {kind: rate - rates_before[kind] for kind, rate in rates_now.items()}
        records.append(_record("artefact_rate_change", against, count, change, "" if change else reason))
    records.append(_growth_record(earlier["base"], after))
    return records


def ngram_growth(before: Sequence[str], after: Sequence[str]) -> dict[str, float]:
    """Words and pairs of words that spread: z of the log-odds ratio with an informative Dirichlet prior.

    Monroe, Colaresi and Quinn (2008), equations 15 to 22; the prior is the count of both sides together, scaled to a
    tenth of it. An n-gram counts once an answer, so that one long loop is no growth of many, and only from five answers
    on. The largest first, those above 0, at most ten.
    """
    counts = [Counter(gram for text in texts for gram in _grams(text)) for texts in (before, after)]
    prior = {gram: 0.1 * (counts[0][gram] + counts[1][gram]) for gram in counts[0] | counts[1]}
    total, mass = sum(prior.values()), [sum(count.values()) for count in counts]
    scores: dict[str, float] = {}
    for gram, count in counts[1].items():
        if count >= _LEAST:
            parts = [own[gram] + prior[gram] for own in counts]
            rest = [mass[side] + total - parts[side] for side in (0, 1)]
            if min(rest) > 0:
                ratio = math.log(parts[1] / rest[1]) - math.log(parts[0] / rest[0])
                scores[gram] = ratio / math.sqrt(1 / parts[0] + 1 / parts[1])
    growing = sorted(((z, gram) for gram, z in scores.items() if z > 0), key=lambda pair: (-pair[0], pair[1]))
    return {gram: z for z, gram in growing[:_TOP]}


def _grams(text: str) -> set[str]:
    words = _WORD.findall(text.lower())
    return {*words, *(f"{one} {two}" for one, two in zip(words, words[1:], strict=False))}


def _growth_record(before: Responses, after: Responses) -> Record:
    sides = [
        [str(row["response"]) for own in responses.values() for row in generated(own).values()]
        for responses in in_both(before, after)
    ]
    growing = ngram_growth(*sides) if all(sides) else {}
    reason = "" if growing else "no n-gram grew" if all(sides) else "no scored row has a generated answer in both rows"
    return Record(
        measure="ngram_growth",
        against="base",
        prompts=SCORED,
        contexts=_GREEDY,
        reduction="largest z of the log-odds ratio (informative Dirichlet prior) over words and pairs of words",
        unit="z",
        n=len(sides[1]),
        value=max(growing.values()) if growing else None,
        reason=reason,
        by=growing,
    )


def _record(measure: str, against: Against, n: int, rates: Mapping[str, float], reason: str) -> Record:
    return Record(
        measure=measure,
        against=against,
        prompts=SCORED,
        contexts=_GREEDY,
        reduction="share of answers with any kind but truncation",
        unit="fraction",
        n=n,
        value=rates.get("any"),
        reason=reason or ("" if rates else "no scored row has a generated answer in both rows"),
        by={kind: rate for kind, rate in rates.items() if kind != "any"},
    )

"""Finds what a response states about its answer to a multiple-choice question, and how firmly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from cl_bench.tasks.scoring.judgements import calls_it_the_answer, subject_ends, verdict_at
from cl_bench.tasks.scoring.letters import TOKEN, Reading, read_answer, read_contrast, read_letters
from cl_bench.tasks.scoring.options import Options
from cl_bench.tasks.scoring.reading import BOX_OPEN


class Force(IntEnum):
    """How much a statement weighs; of the weightiest kind found, the last one in the text decides."""

    DOUBTFUL = 1
    """The answer "might be B", or was once thought to be."""
    JUDGED = 2
    """An option is called right ("B is correct") without a word that makes it the conclusion."""
    CHOSEN = 3
    """An option is chosen or concluded: "I choose B", "therefore B", "so B is correct", "the result is B"."""
    NAMED = 4
    """The answer is named: "the answer is B", "Answer: B", "B is the answer", a box."""


class Statement(NamedTuple):
    """One statement.

    Attributes:
        start: Where it begins.
        letter: What it names; None for several letters, or one that is no option.
        force: How much it weighs.
        end: Where it ends.
    """

    start: int
    letter: str | None
    force: Force
    end: int


_DETERMINERS = (
    r"(?:(?:the|my|our|your|this|that|correct|right|final|best|only|option|choice|answer|statement|letter)\s+)*$"
)
_WRONG_NOUN = re.compile(
    r"\b(?:wrong|incorrect|false|invalid|eliminated|worst|other|another|no|each|every|which|first|second|third|fourth|"
    r"last|unlikely|(?:least|less)\s(?:likely|probable|plausible|correct|suitable|appropriate|accurate))\s+$",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"(?:\b(?:not|never|cannot|(?:I|we|to) doubt|doubtful|unlikely|unclear|unsure|mistakenly|wrongly|incorrectly|often)"
    r"|n't)\s+"
    r"(?:(?:think|believe|sure|true|clear|certain|mean|say|saying|conclude|agree|likely|convinced|imply|case|possible|"
    r"necessarily|whether|if|to|be|it|is|I|we|you|would|as)\s+)*" + _DETERMINERS,
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\b(?:if|whether|suppose|supposing|assume|assuming|unless)\s+(?:(?:that|I|we|you|one)\s+)*" + _DETERMINERS,
    re.IGNORECASE,
)
_ONCE_THOUGHT = re.compile(
    r"\b(?:thought|assumed|tempt\w+|(?:might|may|could) (?:say|think|choose|believe|pick|guess)|initially|at first|"
    r"first glance)\b[^.\n;:]{0,40}$|\bif\b[^.\n;]{0,80}\b(?:were|had|instead)\b[^.\n;]{0,40}$",
    re.IGNORECASE,
)
_OTHERS_SAY = re.compile(
    r"\b(?:many|some|most|others|people|students?|they)\b[^.\n;:,]{0,30}?"
    r"\b(?:says?|said|thinks?|believes?|claims?|assumes?|guess|answer|choose|pick|argues?)\b[^.\n;:,]{0,20}$",
    re.IGNORECASE,
)
_LISTED = re.compile(
    r"(?:\b[A-J][)\]]?\s*(?:,?\s*or|,?\s*and|/|&)|\b[Nn]or|\b[Nn]either|\b[Nn]one of)\s*(?:option\s+)?$"
)
_CONCLUDES = re.compile(
    r"\b(?:but|actually|wait|however|instead|therefore|thus|hence|so|consequently|accordingly|correction|only|"
    r"conclusion|conclude|finally|overall)\b[,:]?\s+(?:(?:that|I|we|think|believe|conclude)\s+)*" + _DETERMINERS,
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[^.!?\n]{0,60}\?")

_OF = r"(?:,?\s+(?:to|for|of|here|that|which|based|given|from|in|I|we|you|then|therefore)\b[^.\n;:?!=]{0,60}?)?"
_BE = (
    r"(?:(?:\s+|')(?:(?P<negated>is not|isn't|was not|wasn't|cannot be|can't be|can not be|won't be|wouldn't be)"
    r"|(?P<might>might be|could be|may be|can be|would(?: then)? be|seems?(?: to be)?|appears?(?: to be)?)"
    r"|(?:is|was|s|are|becomes|remains|equals|"
    r"would (?:therefore|thus|hence|clearly) be|"
    r"(?:should|must|will|has to|can only)(?: (?:therefore|thus|then|hence|clearly))? be))\b\s*:?"
    r"|\s?(?:\([^()\n]{0,40}\)\s?)?(?::|=|→|->|=>|[-–—](?=\s)))\s*"
)
_ANSWER = re.compile(
    r"\b(?:(?P<text>answers?|ans|option|choice|selection|guess|pick)|(?P<noun>statement|claim(?! that)|assertion|one)|"
    r"conclusion|exception|letter|odd one out|solution|response|final|match|fit|verdict|output|result)[\"']?"
    + _OF
    + _BE,
    re.IGNORECASE,
)
# "The result is B" and "the one that fits is B" may be said on the way.
_NAMES_ANSWER = re.compile(r"ans|option|choice|selection|pick|letter|exception|odd", re.IGNORECASE)
_POSSIBLE = re.compile(r"\b(?:one|a)\s(?:possible|plausible|potential)\s+$", re.IGNORECASE)
# A line that says "Answer" and nothing else; and the same in Chinese, which Qwen models fall into.
_HEADING = re.compile(
    r"^(?:the )?(?:final |correct |my )?(?:answer|choice|option)\s?\n"
    r"|(?:答案|故选|应选|选择|选)[应该选择为是: ]*(?:选项)?",
    re.MULTILINE | re.IGNORECASE,
)
_LABEL = re.compile(r"\b(?:(?:correct|right)\s?:|ans\b\.?)\s?", re.IGNORECASE)
_CONTRAST = re.compile(r"\bnot\s+(?=[(\[]?[A-J](?![A-Za-z0-9_]))", re.IGNORECASE)
_ANOTHER = re.compile(
    r"\b(?:another|a second|the other)\s(?:(?:possible|correct|valid|right)\s)?answer\s"
    r"(?:is|(?:could|would|might|may) be)\s",
    re.IGNORECASE,
)
_CHOOSE = re.compile(
    r"\b(?:cho(?:ose|se|sen|osing)|select(?:ed|ing)?|pick(?:ed|ing)?|opt(?:ed|ing)? for|go(?:ing)? (?:with|for)|"
    r"went (?:with|for)|settled? (?:on|for)|vote for|I(?:'ll|'d| will| would) say)\b:?\s*",
    re.IGNORECASE,
)
_CONCLUSION = re.compile(
    r"(?:^(?:=+>|-+>|→|⇒)|\?\sno(?:pe)?[.,:;]|\bby (?:the )?(?:process of )?elimination\b"
    r"|\b(?:therefore|thus|hence|so|consequently|accordingly|in conclusion|finally|yes|clearly|obviously|"
    r"definitely|certainly|wait|actually|sorry|I mean|(?:I|we)(?:'d| would)? (?:think|believe|guess|say))\b|∴|⇒)"
    r"[,:]?\s+(?:(?:that|it's|it is|it must be|this is|that is|we have|we get|no,?)\s+){0,4}",
    re.IGNORECASE | re.MULTILINE,
)
_PERHAPS = re.compile(
    r"(?<!least )(?<!less )(?<!not )\b(?:probably|maybe|perhaps|possibly|likely)\b[,:]?\s+", re.IGNORECASE
)
_IT_IS = re.compile(r"\b(?:it|this|that|which)(?:'s| is| must be| has to be| should be)\s+", re.IGNORECASE)
_OPTION_THAT = re.compile(
    r"\b(?:match(?:es|ing)?|correspond(?:s|ing)? to|consistent with|agrees with|equivalent to|leads? to|leaves?(?: us)?"
    r"(?: with)?|points? to|supports?|indicates?|is|are)\s+(?:only\s+)?(?:the\s+)?(?=(?:option|choice|answer)\s)",
    re.IGNORECASE,
)
_POINTS_TO = re.compile(
    r"(?:\b(?:leaves?(?: us)?(?: with)?|match(?:es|ing)?|correspond(?:s|ing)? to|consistent with|agrees? with"
    r"|points? to|(?:we|I) (?:get|are left with)|(?:this|that|which) gives)"
    r"|(?:^|[.,;\n]\s?)must be)\s+(?:only\s+)?",
    re.IGNORECASE,
)
_LEADS = (
    (_CONCLUSION, Force.CHOSEN),
    (_PERHAPS, Force.DOUBTFUL),
    (_IT_IS, Force.JUDGED),
    (_OPTION_THAT, Force.JUDGED),
    (_POINTS_TO, Force.JUDGED),
)
_STRICT_END = re.compile(r"\s*(?:$|[\n.;!\x03]|,?\s*(?:because|since|as|due|which|not)\b|[-–—]\s)")
_BEFORE_TOKEN = re.compile(r"(?<![A-Za-z0-9_'\-/+=)\]])(?=[(\[{\"']{0,3}[A-J](?![A-Za-z0-9_]))")


def statements(text: str, options: Options) -> Iterator[Statement]:
    """Every statement about the answer in a plain text (see ``reading.plain``), kind by kind."""
    yield from _named(text, options)
    yield from _chosen(text, options)
    yield from _concluded(text, options)
    yield from _judged(text, options)


def _named(text: str, options: Options) -> Iterator[Statement]:
    for match in _ANSWER.finditer(text):
        wrong = _WRONG_NOUN.search(_before(text, match.start()))
        if wrong and not match["noun"]:
            continue
        if match["negated"]:
            reading = read_contrast(text, match.end(), options)
        else:
            reading = read_answer(text, match.end(), options, words=bool(match["text"]))
        doubtful = bool(match["might"]) or _POSSIBLE.search(_before(text, match.start())) is not None
        force = Force.NAMED if _NAMES_ANSWER.match(match.group()) else Force.CHOSEN
        yield from _checked(text, options, match.start(), reading, doubtful=doubtful, force=force)
    for match in _ANOTHER.finditer(text):
        if reading := read_letters(text, match.end(), options):
            yield Statement(match.start(), None, Force.NAMED, reading.end)
    for pattern in (_HEADING, _LABEL):
        for match in pattern.finditer(text):
            yield from _checked(text, options, match.start(), read_letters(text, match.end(), options))
    yield from _boxed(text, options)


def _boxed(text: str, options: Options) -> Iterator[Statement]:
    done = 0
    for box in re.finditer(BOX_OPEN, text):
        if box.start() >= done:
            reading = read_letters(text, box.start(), options) or read_answer(text, box.end(), options)
            done = reading.end if reading else done
            yield from _checked(text, options, box.start(), reading)


def _chosen(text: str, options: Options) -> Iterator[Statement]:
    for match in _CHOOSE.finditer(text):
        reading = read_answer(text, match.end(), options)
        yield from _checked(text, options, match.start(), reading, force=Force.CHOSEN)
    for match in _CONTRAST.finditer(text):
        reading = read_contrast(text, match.end(), options)
        yield from _checked(text, options, match.start(), reading, force=Force.JUDGED)


def _concluded(text: str, options: Options) -> Iterator[Statement]:
    for pattern, force in _LEADS:
        for match in pattern.finditer(text):
            reading = read_letters(text, _after_noun(text, match.end()), options)
            if reading and reading.letter and _STRICT_END.match(text, reading.end):
                concludes = force is Force.JUDGED and _CONCLUDES.search(_before(text, match.start()))
                yield from _checked(text, options, match.start(), reading, force=Force.CHOSEN if concludes else force)


def _after_noun(text: str, start: int) -> int:
    noun = re.compile(r"(?:the\s+)?(?:correct\s+)?(?:option|choice|answer|letter)\s+", re.IGNORECASE).match(text, start)
    return noun.end() if noun else start


def _judged(text: str, options: Options) -> Iterator[Statement]:
    for place in _BEFORE_TOKEN.finditer(text):
        token = TOKEN.match(text, place.start())
        if token is None or token.group(2) not in options.letters:
            continue
        before = _before(text, token.start())
        verdict = next(
            filter(None, (verdict_at(text, end, before) for end in subject_ends(text, token, options))), None
        )
        if verdict is None or _LISTED.search(before):
            continue
        reading = Reading(token.group(2), verdict.end())
        yield from _checked(text, options, token.start(), reading, force=_force(text, verdict, before))


def _force(text: str, verdict: re.Match[str], before: str) -> Force:
    if calls_it_the_answer(text, verdict):
        return Force.NAMED
    definite = verdict.groupdict().get("definite") or _CONCLUDES.search(before)
    return Force.CHOSEN if definite else Force.JUDGED


def _before(text: str, place: int) -> str:
    return text[max(0, place - 160) : place]


def _checked(
    text: str,
    options: Options,
    start: int,
    reading: Reading | None,
    *,
    doubtful: bool = False,
    force: Force = Force.NAMED,
) -> Iterator[Statement]:
    """The statement, unless it is denied, supposed, asked or what others say."""
    if reading is None or _asked(text, reading, options):
        return
    before = _before(text, start)
    if any(pattern.search(before) for pattern in (_NEGATED, _SUPPOSED, _OTHERS_SAY)):
        return
    doubtful = doubtful or _ONCE_THOUGHT.search(before) is not None
    yield Statement(start, reading.letter, Force.DOUBTFUL if doubtful else force, reading.end)


def _asked(text: str, reading: Reading, options: Options) -> bool:
    # An option's own text may be a question.
    own = options.own_end(reading.letter, text, reading.end) if reading.letter else None
    return _QUESTION.match(text, reading.end if own is None else own) is not None

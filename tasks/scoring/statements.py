"""Finds what a response states about its answer to a multiple-choice question, and how firmly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from cl_bench.tasks.scoring.letters import TOKEN, Reading, read_answer, read_contrast, read_letters
from cl_bench.tasks.scoring.options import Options
from cl_bench.tasks.scoring.reading import BOX_OPEN


class Force(IntEnum):
    """How much a statement weighs; of the weightiest kind found, the last one in the text decides."""

    DOUBTFUL = 1
    """The answer "might be B", or was once thought to be."""
    JUDGED = 2
    """An option is called right ("B is correct") without a word that makes it the conclusion."""
    STATED = 3
    """The answer is named: "the answer is B", "I choose B", a box, "so B is correct"."""


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
    r"last)\s+$",
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
    r"|(?P<might>might be|could be|may be|can be|seems?(?: to be)?|appears?(?: to be)?)"
    r"|(?:is|was|s|are|becomes|remains|equals|"
    r"(?:would|should|must|will|has to|can only)(?: (?:therefore|thus|then|hence|clearly))? be))\b\s*:?"
    r"|\s?(?:\([^()\n]{0,40}\)\s?)?(?::|=|→|->|=>|[-–—](?=\s)))\s*"
)
_ANSWER = re.compile(
    r"\b(?:(?P<text>answers?|ans|option|choice|selection|guess|pick)|(?P<noun>statement|claim|assertion|one)|"
    r"conclusion|exception|letter|odd one out|solution|response|final|match|fit|verdict|output|result)[\"']?"
    + _OF
    + _BE,
    re.IGNORECASE,
)
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
    (_CONCLUSION, Force.STATED),
    (_PERHAPS, Force.DOUBTFUL),
    (_IT_IS, Force.JUDGED),
    (_OPTION_THAT, Force.JUDGED),
    (_POINTS_TO, Force.JUDGED),
)
_STRICT_END = re.compile(r"\s*(?:$|[\n.;!\x03]|,?\s*(?:because|since|as|due|which|not)\b|[-–—]\s)")
_BEFORE_TOKEN = re.compile(r"(?<![A-Za-z0-9_'\-/+=)\]])(?=[(\[{\"']{0,3}[A-J](?![A-Za-z0-9_]))")
_PARENTHESIS = re.compile(r"\s?\([^()\n]{0,80}\)")
_APPOSITION = re.compile(r",\s[^,.\n;]{1,80},")
_ANY_WORDS = re.compile(r"[.:]\s[^.\n;:]{1,80}?(?=\s(?:is|was|must|would)\s)")
_RIGHT = re.compile(
    r"\s+(?:is|was|must be|would be|has to be|should be|will be|remains|(?:seems|appears|looks)(?: to be)?)\s+"
    r"(?:(?:indeed|clearly|therefore|thus|hence|definitely|certainly|obviously|actually|most likely|likely|probably|"
    r"then)\s+)*"
    r"(?:(?P<definite>(?:the|my|our)\s+(?:(?!wrong|incorrect|least|worst)\w+\s+){0,3}?"
    r"(?:answer|(?:correct|right|best|true)\s+(?:\w+\s+)?"
    r"(?:answer|option|choice|one|solution|match|selection|statement|response)))\b"
    r"|(?:correct|right|true|valid|best|accurate|the (?:correct|right|best|most \w+|closest))(?![\w-]))"
    r"(?!\s+(?:only|if|when)\b)",
    re.IGNORECASE,
)
_FITS = re.compile(
    r"\s+(?:(?:fits|matches|suits|satisfies|agrees with|explains)\s+(?:best|the|all|this|these|both|our|with|every|"
    r"well|it|perfectly|exactly)\b|works(?: best)?\s*(?=$|[.\n;!])|is\s+(?:the\s+)?better(?!\s+(?:than|if|when|to)\b)"
    r"|is\s+the\s+(?:most|only)\s+(?:consistent|plausible|reasonable|likely)\b)",
    re.IGNORECASE,
)
_ALONE_FITS = re.compile(
    r"\s+(?:is\s+(?:consistent|possible|valid|plausible|viable|left)|works|fits|match(?:es)?|remains|holds|satisfies|agrees|"
    r"makes sense)\b",
    re.IGNORECASE,
)
_ONLY_BEFORE = re.compile(r"\bonly\s(?:option\s|choice\s|answer\s)?$", re.IGNORECASE)
# "Graph B matches the data" is about a graph.
_SUBJECT_BEFORE = re.compile(
    r"(?:\A|[.,;:!?\n(]\s?|\b(?:only|option|choice|answer|statement|so|but|and|then|thus|hence|therefore|that|because|since|"
    r"as|while|think|believe)\s)$",
    re.IGNORECASE,
)


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
        yield from _checked(text, options, match.start(), reading, doubtful=bool(match["might"]))
    for match in _ANOTHER.finditer(text):
        if reading := read_letters(text, match.end(), options):
            yield Statement(match.start(), None, Force.STATED, reading.end)
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
        yield from _checked(text, options, match.start(), read_answer(text, match.end(), options))
    for match in _CONTRAST.finditer(text):
        reading = read_contrast(text, match.end(), options)
        yield from _checked(text, options, match.start(), reading, force=Force.JUDGED)


def _concluded(text: str, options: Options) -> Iterator[Statement]:
    for pattern, force in _LEADS:
        for match in pattern.finditer(text):
            reading = read_letters(text, _after_noun(text, match.end()), options)
            if reading and reading.letter and _STRICT_END.match(text, reading.end):
                concludes = force is Force.JUDGED and _CONCLUDES.search(_before(text, match.start()))
                yield from _checked(text, options, match.start(), reading, force=Force.STATED if concludes else force)


def _after_noun(text: str, start: int) -> int:
    noun = re.compile(r"(?:the\s+)?(?:correct\s+)?(?:option|choice|answer|letter)\s+", re.IGNORECASE).match(text, start)
    return noun.end() if noun else start


def _judged(text: str, options: Options) -> Iterator[Statement]:
    for place in _BEFORE_TOKEN.finditer(text):
        token = TOKEN.match(text, place.start())
        if token is None or token.group(2) not in options.letters:
            continue
        before = _before(text, token.start())
        verdict = next(filter(None, (_verdict(text, end, before) for end in _subject_ends(text, token, options))), None)
        if verdict is None or _LISTED.search(before):
            continue
        firm = verdict.groupdict().get("definite") or _CONCLUDES.search(before)
        reading = Reading(token.group(2), verdict.end())
        yield from _checked(text, options, token.start(), reading, force=Force.STATED if firm else Force.JUDGED)


def _verdict(text: str, start: int, before: str) -> re.Match[str] | None:
    """What calls the option right whose name ends at ``start``."""
    if verdict := _RIGHT.match(text, start):
        return verdict
    verdict = _ALONE_FITS.match(text, start)
    if verdict and _ONLY_BEFORE.search(before[-30:]):
        return verdict
    verdict = _FITS.match(text, start)
    return verdict if verdict and _SUBJECT_BEFORE.search(before[-30:]) else None


def _subject_ends(text: str, token: re.Match[str], options: Options) -> Iterator[int]:
    """Where the subject that a letter begins may end: "B", "B (water)", "B, water,", "B. Water"."""
    yield token.end()
    own = options.own_end(token.group(2), text, token.end())
    if own is not None:
        yield own
    patterns = (_PARENTHESIS, _APPOSITION) if options.texts else (_PARENTHESIS, _APPOSITION, _ANY_WORDS)
    for pattern in patterns:
        if match := pattern.match(text, token.end()):
            yield match.end()


def _before(text: str, place: int) -> str:
    return text[max(0, place - 160) : place]


def _checked(
    text: str,
    options: Options,
    start: int,
    reading: Reading | None,
    *,
    doubtful: bool = False,
    force: Force = Force.STATED,
) -> Iterator[Statement]:
    """The statement, unless it is denied, supposed or asked."""
    if reading is None or _asked(text, reading, options):
        return
    before = _before(text, start)
    if _NEGATED.search(before) or _SUPPOSED.search(before):
        return
    doubtful = doubtful or _ONCE_THOUGHT.search(before) is not None
    yield Statement(start, reading.letter, Force.DOUBTFUL if doubtful else force, reading.end)


def _asked(text: str, reading: Reading, options: Options) -> bool:
    # An option's own text may be a question.
    own = options.own_end(reading.letter, text, reading.end) if reading.letter else None
    return _QUESTION.match(text, reading.end if own is None else own) is not None

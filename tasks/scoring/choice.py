"""Reads which option a response to a multiple-choice question settles on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.letters import TOKEN, Reading, read_answer, read_letters
from cl_bench.tasks.scoring.marks import marks, shares
from cl_bench.tasks.scoring.options import LETTERS, Options, bare
from cl_bench.tasks.scoring.reading import LONGEST, answer_part, first_turn, plain, tag_form, tagged_answer
from cl_bench.tasks.scoring.retractions import Retraction, retraction
from cl_bench.tasks.scoring.statements import Force, Statement, statements

__all__ = ["LETTERS", "parse_choice", "score_choice"]

_SET_OFF = re.compile(r"(?<!\S)[(\[]?([A-J])[)\].:]+(?= \S)")
_MENTION = re.compile(r"\b(?i:option|choice|answer) (?=[(\[\"']?[A-J](?![A-Za-z0-9_])|\([a-j]\)|[a-j][.!]?\s*\Z)")
_WITH_OTHER_TEXT = re.compile(r"[(\[]?([A-J])[)\].:]{1,2}\s(?=[a-z])([^\n]*)")
_BOLD = re.compile(r"\*\*\s*[(\[]?([A-J])[)\].:]*(?:\s[^*\n]*)?\*\*([^\n]{0,60})")
_BULLET = re.compile(r"(?:[-=]+>\s?|[-•:→⇒]\s?|\d{1,2}[.)]\s)?\s*")
_SENTENCE = re.compile(r" (?!because\b|since\b|as\b|due\b)[A-Za-z0-9]")
_AFTER_NEW = re.compile(r"\s*(?:$|[\n.,;!)\x03]|(?:because|since|as|not|instead|is)\b)")
_ANY_LETTER = re.compile(r"(?<![A-Za-z'])[A-J](?![A-Za-z'])(?! [a-z])")
_LETTER_LINE = re.compile(r"\.?\n[(\[]?([A-J])[)\].]?(?:\n|$)")
_LAST_PARENTHESIS = re.compile(r"(?<!\w)\(([A-J])\)[.\s]*$")
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|no|rule out|ruling out|eliminat\w+|exclud\w+|reject\w*|unlike|except|than|of|neither|nor|wrong|"
    r"incorrect)|n't)\s+(?:the\s+)?$|\b(?:students?|people|many|some|most|others|often|commonly|usually|mistakenly)\b"
    r"[^.\n]{0,20}$",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"\?|[^.\n;]{0,40}?(?:\b(?:not|cannot|incorrect|wrong|false|invalid|eliminated|excluded|unlikely|impossible|ruled|too)\b"
    r"|n't\b)",
    re.IGNORECASE,
)


def parse_choice(text: str, count: int = 4, choices: Sequence[str] = ()) -> str | None:
    r"""The letter of the option a response settles on, or None.

    Reasoning blocks are set aside first (``reading.answer_part``), and markup is taken off. Then the first of these
    rules that finds anything decides:

    1. the content of the last ``<answer>`` that is not empty, read by the rules below; an empty one is no answer;
    2. a text that is an option's text and nothing else (a letter alone is a letter, though, whatever the options say);
    3. the last statement that names the answer: "the answer is B", "Answer: B", "B is the answer", ``\boxed{B}``, a
       last line that is a letter alone; where there is none, or it names several, the last choice or conclusion ("I
       choose B", "therefore B", "so B is correct", "B is the best choice");
    4. lines that are a letter and its verdict ("A ❌", "B: correct"), if they call one option right;
    5. a letter set off at the very beginning: "B", "(B) text", "B. Water", "B because …";
    6. options called right ("B is correct", "this matches option B"), if all such statements agree;
    7. a last line that is a letter set off with its text, or an option's text and nothing else;
    8. the last doubtful statement: "the answer might be B" or would be, "at first I thought the answer is B";
    9. the only letter that is mentioned as an option ("option B", "answer B", in bold, in parentheses at the end) and
       is not denied.

    A statement may name the option by its text instead of its letter ("the answer is 46.07"), if it is the text of one
    option only, or by its place ("the second option"). What is taken back ("wait, no", "(edit: C)", "that's wrong") is
    replaced by the letter that follows, or by none (see ``retractions``). Several letters in one statement ("A or B",
    ``\boxed{A} \boxed{B}``) are no answer, nor is a letter with another option's text ("B. 46.07" where that is A's
    text), and such a statement decides like any other. A question that a base model goes on with is not read, unless
    no letter stands before it.
    Denied, supposed and asked statements do not count ("the answer is not A", "if the answer is A", "A?"), and options
    said again are no answer. A small letter counts only alone or between marks, for "a" is an article; "A" does not
    before an ordinary word, nor does "I".

    Args:
        text: The response.
        count: Number of options; later letters are no answers.
        choices: Texts of the options, where they are known.
    """
    options = Options.of(count, choices)
    text = answer_part(text)
    turn = first_turn(text)
    goes_on = len(turn) < len(text) and not _ANY_LETTER.search(turn)
    return _parse(text if goes_on else turn, options)


def _parse(text: str, options: Options) -> str | None:
    content = tagged_answer(text)
    if content is None:
        return _read(text, options)
    return _read(content, options) or _with_other_text(plain(content[-LONGEST:]), options)


def _with_other_text(content: str, options: Options) -> str | None:
    """The letter of a tag that holds one with a text, though no option has that text ("B. heavy water")."""
    match = _WITH_OTHER_TEXT.fullmatch(content)
    if (
        match is None
        or match.group(1) not in options.letters
        or options.contradicts(match.group(1), content, match.end(1))
    ):
        return None
    said = match.group(2)
    return None if _ANY_LETTER.search(said) or _DENIED_AFTER.match(said) else match.group(1)


def _read(raw: str, options: Options) -> str | None:
    raw = raw[-LONGEST:]
    text = plain(raw)
    if words := options.named(text) or options.equated(bare(text)) or _counted(text, options):
        return words
    found = [statement for statement in statements(text, options) if not _restates(text, statement, options)]
    found = sorted([*found, *_last_line(text, options)], key=lambda statement: statement.start)
    if firm := _firmest(found):
        return _settled(text, Reading(firm.letter, firm.end), found, options)
    marked = marks(text)
    if marked.only and marked.only in options.letters:
        return marked.only
    lead = _lead(text, options)
    if lead and lead.letter and lead.letter not in marked.wrong and len(marked.right) < 2:
        return _settled(text, lead, found, options)
    if judged := _judged([statement for statement in found if statement.force is Force.JUDGED], text):
        return judged
    doubtful = [statement for statement in found if statement.force is Force.DOUBTFUL]
    doubtful = [statement for statement in doubtful if lead is None or statement.start >= lead.end]
    if words := _last_words(text, options):
        return words
    return doubtful[-1].letter if doubtful else _only_mention(raw, text, options)


def _counted(text: str, options: Options) -> str | None:
    counted = options.counted(text, 0)
    return counted[0] if counted and not text[counted[1] :].strip(" .!") else None


def _firmest(found: Sequence[Statement]) -> Statement | None:
    """The last statement that names the answer, else the last choice; that also where the former leaves it open."""
    named = [statement for statement in found if statement.force is Force.NAMED]
    if named and named[-1].letter:
        return named[-1]
    firm = [statement for statement in found if statement.force >= Force.CHOSEN]
    return firm[-1] if firm else None


def _settled(text: str, reading: Reading, found: Sequence[Statement], options: Options) -> str | None:
    """The letter of a reading, or what replaces it where it is taken back (see ``retractions``)."""
    while reading.letter and (taken := retraction(text, reading.end)):
        new = read_answer(text, taken.end, options)
        if new and _AFTER_NEW.match(text, new.end):
            reading = new
        elif taken.firm:
            return _only_one(statement for statement in found if statement.start >= taken.start)
        else:
            reading = Reading(reading.letter, taken.end)
    return reading.letter


def _judged(found: Sequence[Statement], text: str) -> str | None:
    """The letter that all judgements agree on; those before a firm retraction do not count if others follow it."""
    taken: Retraction | None = retraction(text, found[0].end) if found else None
    later = [statement for statement in found if taken and taken.firm and statement.start >= taken.start]
    return _only_one(later or found)


def _only_one(found: Iterable[Statement]) -> str | None:
    letters = {statement.letter for statement in found}
    return letters.pop() if len(letters) == 1 else None


def _restates(text: str, statement: Statement, options: Options) -> bool:
    """Whether the letter of a statement is the first of the options said again ("The options: A. Ice B. Steam …")."""
    first = _SET_OFF.search(text, statement.start, statement.start + 120)
    if first is None or first.group(1) != statement.letter:
        return False
    introduced = not options.texts and re.search(r"[:\n]", text[statement.start : first.start()])
    return bool(introduced or options.own_at(first.group(1), text, first.end())) and _goes_on(text, first, options)


def _goes_on(text: str, first: re.Match[str], options: Options) -> bool:
    """Whether the next option is set off, too; after an option's own text, only with the next one's text."""
    listed = options.own_at(first.group(1), text, first.end())
    for match in _SET_OFF.finditer(text, first.end(), first.end() + 2 * options.reach + 400):
        step = ord(match.group(1)) - ord(first.group(1))
        if step <= 0:
            return False
        if step == 1 and (not listed or options.own_at(match.group(1), text, match.end())):
            return True
    return False


def _lead(text: str, options: Options) -> Reading | None:
    """The letter, or the several letters, that the text begins with."""
    begin = _BULLET.match(text)
    start = begin.end() if begin else 0
    reading = read_letters(text, start, options)
    if reading is not None and reading.letter is None:
        return reading
    if reading is None or not _leads(text, start, reading, options):
        return None
    below = _LETTER_LINE.match(text, reading.end)
    if (below and below.group(1) != reading.letter) or len(shares(text)) > 1:
        return None
    first = _SET_OFF.match(text, start)
    return None if first and _goes_on(text, first, options) else reading


def _leads(text: str, start: int, reading: Reading, options: Options) -> bool:
    """Whether a letter at the beginning is an answer, and not the first word, item or question of more text."""
    if text[reading.end : reading.end + 1] == "?":
        return False
    letter = reading.letter or ""
    if not _SENTENCE.match(text, reading.end) or options.own_at(letter, text, reading.end):
        return True
    enumerated = bool(options.texts) and letter not in text[start : reading.end]  # "(a) first …"
    return text[reading.end - 1] in ")]" and not enumerated


def _last_line(text: str, options: Options) -> list[Statement]:
    """A last line that is a letter alone, as a firm statement, unless letters alone are all that the text lists."""
    start = text.rfind("\n") + 1
    token = TOKEN.match(text, start)
    if start == 0 or token is None or text[token.end() :].strip(" .") or token.group(2) not in options.letters:
        return []
    above = TOKEN.match(text, text.rfind("\n", 0, start - 1) + 1)
    if above and above.group(2) != token.group(2) and not text[above.end() : start].strip(" .\n"):
        return []
    return [Statement(start, token.group(2), Force.NAMED, start + len(token.group()))]


def _last_words(text: str, options: Options) -> str | None:
    lines = text.split("\n")
    if len(lines) > 1 and sum(options.named(line) is not None for line in lines[-len(options.letters) - 1 :]) > 1:
        return None
    token = TOKEN.match(lines[-1])
    if token and token.group(2) in options.letters and options.own_at(token.group(2), lines[-1], token.end()):
        letters = {match.group(1) for match in _SET_OFF.finditer(text)}
        return token.group(2) if letters <= {token.group(2)} else None
    return options.named(lines[-1])


def _only_mention(raw: str, text: str, options: Options) -> str | None:
    letters: set[str | None] = set(_LAST_PARENTHESIS.findall(text[-8:]))
    for match in _MENTION.finditer(text):
        reading = read_letters(text, match.end(), options)
        denied = _DENIED_BEFORE.search(text[max(0, match.start() - 40) : match.start()])
        if reading and not denied and not _DENIED_AFTER.match(text, reading.end):
            letters.add(reading.letter)
    letters.update(match.group(1) for match in _BOLD.finditer(raw) if not _DENIED_AFTER.match(match.group(2)))
    only = letters.pop() if len(letters) == 1 else None
    return only if only is not None and only in options.letters else None


def score_choice(example: Example, text: str) -> Score:
    """Score a multiple-choice response.

    ``correct`` takes any form that ``parse_choice`` reads; ``format_ok`` asks for ``<reasoning>…</reasoning>`` followed
    by ``<answer>X</answer>`` and nothing else (see ``reading.tag_form``).
    """
    choices = example.choices or LETTERS[:4]
    parsed = parse_choice(text, len(choices), example.choices or ())
    format_ok = tag_form(text) in tuple(LETTERS[: len(choices)])
    return Score(correct=parsed is not None and parsed == example.answer, parsed=parsed, format_ok=format_ok)

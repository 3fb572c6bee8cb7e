"""Finds the program in a response and runs it against the tests of its example."""

from __future__ import annotations

import ast
import builtins
import itertools
import re
import textwrap
import threading
import warnings
from collections.abc import Iterator, Sequence

from cl_bench.harness.errors import ClBenchError
from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.code_execution import Limits, run_program
from cl_bench.tasks.scoring.code_blocks import Block, answer_part, asides, blocks, lines_of

_LONGEST = 20_000
"""Characters of a block, or of a text without blocks, beyond which it is not read as a program."""
_BLOCKS = 32
"""The last blocks of a response, which are looked at."""
_READINGS = 4
"""Ways in which a stretch is read where there is a prefix."""
_STRETCHES = 16
"""Shorter stretches of a text that are tried where the whole is no Python."""
_MOST_PARSED = 240_000
"""Characters that are parsed in looking for one program, several readings of a stretch included."""
_CODE_LINE = re.compile(r"(from\s+[\w.]+\s+import\b|import\s+[\w.]+\s*(,|as\b|$)|(async\s+)?def\s+\w|class\s+\w|@\w)")
_HEADER = re.compile(r"^(?:async\s+)?def\s+(\w+)", re.MULTILINE)
LIMITS = Limits(seconds=30.0, cpu_seconds=10)
"""A program that computes ends by its processor time, which a busy machine does not shorten; one that waits, by the
clock."""
_TIMED_OUT = re.compile(r"timed out after [\d.]+ s")
_parsing = threading.Lock()
"""Held while warnings are off, which is a setting of the whole process."""

_COMPLETE, _DEFINES, _PARSES, _BROKEN = 3, 2, 1, 0


def extract_code(text: str, prefix: str = "", entry_point: str | None = None) -> str:
    """The program in a response.

    Of several fenced blocks, the last that defines ``entry_point`` counts, else the last that defines anything, else
    the last that is Python; one that is introduced as wrong ("Wrong way:") only where there is no other. A block whose
    lines continue ``prefix`` (indented, or not defining what it should) is joined to it. Without a fence the text is
    searched: prose before the code, and what follows it, is left out; then indented blocks and code spans in prose.

    Args:
        text: The response. ``<think>`` and ``[BEGIN]`` ... ``[DONE]`` are understood.
        prefix: Source that a bare completion continues, or "".
        entry_point: Name that the program must define, or None (with a prefix: the last function of the prefix).

    Returns:
        Source code, with ``prefix`` where it continues that; "" where there is none. It need not be valid Python.
    """
    text = answer_part(text.replace("\r\n", "\n"))
    headers = _HEADER.findall(prefix)
    name = entry_point or (headers[-1] if headers else None)
    work = _Work(_MOST_PARSED)
    found = [_program(block, prefix, name, work) for block in reversed(blocks(text)[-_BLOCKS:])]
    # The last of those that are equally good.
    best, rank = max(found, key=lambda program: program[1], default=("", _BROKEN))
    if rank >= _DEFINES:
        return best
    whole, whole_rank = _program(Block(text, closed=False), prefix, name, work)
    if not found and whole_rank < _DEFINES:
        said = [_program(block, "", name, work) for block in reversed(asides(text)[-_BLOCKS:])]
        aside, aside_rank = max(said, key=lambda program: program[1], default=("", _BROKEN))
        if aside_rank >= (_COMPLETE if name else _DEFINES):
            return aside
    if whole_rank > rank and (whole_rank >= _DEFINES or _looks_like_code(text)):
        return whole
    return best if found or not _looks_like_code(text) else text


def _looks_like_code(text: str) -> bool:
    """Whether text without a fence is meant as code: a word of prose can be a valid expression."""
    lines = [line for line in lines_of(text) if line.strip()]
    return bool(lines) and (lines[0][0].isspace() or any(_CODE_LINE.match(line) for line in lines))


class _Work:
    """How many characters may still be parsed."""

    def __init__(self, left: int) -> None:
        self.left = left


def _program(block: Block, prefix: str, name: str | None, work: _Work) -> tuple[str, int]:
    """The best reading of a block, and how good it is."""
    best, best_rank = block.text, _BROKEN
    if len(block.text) > _LONGEST:
        return best, best_rank
    for stretch in [block.text] if block.closed else _stretches(block.text):
        work.left -= len(stretch) * (_READINGS if prefix and name else 1)
        if work.left < 0:
            break
        for source, rank in _readings(stretch, prefix, name):
            if rank > best_rank:
                best, best_rank = source, rank
            if best_rank == _COMPLETE or (best_rank == _DEFINES and name is None):
                return best, best_rank
    return best, best_rank


def _readings(stretch: str, prefix: str, name: str | None) -> Iterator[tuple[str, int]]:
    """A stretch as a program of its own, then as what continues the prefix."""
    indented = stretch.lstrip("\n")[:1].isspace()
    # Otherwise left as it is: dedent empties blank lines, inside of strings too.
    alone = textwrap.dedent(stretch) if indented else stretch
    yield alone, _rank(alone, name)
    if not prefix or name is None:
        return
    if indented and _completes(prefix + stretch, name, returns=False):
        yield prefix + stretch, _COMPLETE
    # The prefix may end with the first line's indent; the response, or what cut it out, may have dropped any.
    start = prefix if prefix.endswith("\n") else prefix + "\n"
    for source in (prefix + stretch, start + "    " + stretch.lstrip(), start + textwrap.indent(alone, "    ")):
        if _completes(source, name, returns=True):
            yield source, _COMPLETE
            return


def _stretches(text: str) -> Iterator[str]:
    """The text, then shorter parts: without what stands before a line of code, and ending before an unindented line."""
    lines = lines_of(text)
    starts = [0, *(number for number, line in enumerate(lines) if number and _CODE_LINE.match(line))]
    ends = [number for number, line in enumerate(lines) if number and line.strip() and not line[0].isspace()]
    shorter = ((start, end) for end in [len(lines), *reversed(ends)] for start in starts[:5] if start < end)
    for start, end in itertools.islice(shorter, _STRETCHES):
        yield "".join(lines[start:end])


def _rank(source: str, name: str | None) -> int:
    tree = _parsed(source)
    if tree is None or not tree.body or any(isinstance(statement, ast.Return) for statement in tree.body):
        return _BROKEN
    names = dict(_defined(tree.body))
    if name in names and _has_body(names[name]):
        return _COMPLETE
    return _DEFINES if names else _PARSES


def _completes(source: str, name: str, returns: bool) -> bool:
    """Whether the function has a body in this source; with ``returns``, one that hands something back.

    An unindented line that follows the prefix may as well be a use of the function, which hands nothing back.
    """
    if _rank(source, name) != _COMPLETE:
        return False
    tree = _parsed(source)
    function = dict(_defined(tree.body))[name] if tree else None
    handing = (ast.Return, ast.Yield, ast.YieldFrom, ast.Raise)
    return not returns or (function is not None and any(isinstance(node, handing) for node in ast.walk(function)))


def _parsed(source: str) -> ast.Module | None:
    with _parsing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return None


def _defined(statements: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Names that a module's statements bind, also inside of "if" and "try", with the statement."""
    for statement in statements:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield statement.name, statement
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from ((target.id, statement) for target in targets if isinstance(target, ast.Name))
        elif isinstance(statement, (ast.If, ast.Try)):
            handlers = statement.handlers if isinstance(statement, ast.Try) else []
            for part in (statement.body, statement.orelse, *(handler.body for handler in handlers)):
                yield from _defined(part)


def _has_body(statement: ast.stmt) -> bool:
    """Whether a function does anything; a docstring or a word of prose does not."""
    if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return True
    return any(not isinstance(part, ast.Expr) or isinstance(part.value, ast.Call) for part in statement.body)


def _before_function(prefix: str, name: str | None) -> str:
    """What a prefix holds before the function that is to be completed: imports and helpers."""
    tree = _parsed(prefix + "\n    pass\n")
    found = [statement for key, statement in _defined(tree.body) if key == name] if tree else []
    if not found or not isinstance(found[-1], (ast.FunctionDef, ast.AsyncFunctionDef)):
        return ""
    first = min(part.lineno for part in (found[-1], *found[-1].decorator_list))
    return "".join(lines_of(prefix)[: first - 1])


def _tested_name(tests: str) -> str | None:
    """The function that the last assertion calls first, where no entry point is named."""
    tree = _parsed(tests)
    asserted = [statement for statement in tree.body if isinstance(statement, ast.Assert)] if tree else []
    own = {name for name, _ in _defined(tree.body)} if tree else set()
    for statement in reversed(asserted):
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                name = node.func.id
                if name not in own and not hasattr(builtins, name):
                    return name
    return None


def score_code(example: Example, text: str) -> Score:
    """Run the program in a response: correct when setup, program and tests run to their end.

    ``example.meta`` holds ``prefix`` (source that a bare completion continues, else ""), ``setup`` (source before the
    program), ``tests`` (source after it) and ``entry_point`` (a name, or null). A program that replaces the function of
    the prefix still sees what the prefix holds before it (imports, helpers).

    Returns:
        ``parsed`` is the extracted code, ``format_ok`` that it is Python; ``unreliable`` where the checker failed, or
        where the time by the clock was over before the processor time was.
    """
    prefix, setup, tests = (str(example.meta.get(key) or "") for key in ("prefix", "setup", "tests"))
    name = example.meta.get("entry_point") or _tested_name(tests)
    code = extract_code(text, prefix, name)
    if not code.strip():
        return Score(correct=False, parsed=None, format_ok=False)
    if _parsed(code) is None:
        return Score(correct=False, parsed=code, format_ok=False)
    given = "" if prefix and code.startswith(prefix) else _before_function(prefix, name)
    try:
        outcome = run_program([setup, given, code, tests], LIMITS)
    except ClBenchError as error:
        return Score(correct=False, parsed=code, format_ok=True, unreliable=str(error))
    # The clock, unlike processor time, depends on what else the machine does.
    unreliable = outcome.reason if _TIMED_OUT.fullmatch(outcome.reason) else None
    return Score(correct=outcome.passed, parsed=code, format_ok=True, unreliable=unreliable)

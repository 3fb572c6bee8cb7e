"""Questions of the retention skills."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from itertools import pairwise, product

from cl_bench.tasks.lab.domains.arithmetic import ADDENDS, LARGE_ADDENDS, add
from cl_bench.tasks.lab.kinds import Item, Kind, Operands, pick, unit
from cl_bench.tasks.lab.words import CITIES, NAMES, WORDS

_ROWS = 12000
"""Rows drawn for a skill before its keys are split."""
_ORDINALS = ("first", "second", "third", "fourth", "last")
_PLACES = ("lake", "hill", "ship", "tree")
_COLORS = WORDS[:5]
_ANIMALS = (
    "cat",
    "dog",
    "owl",
    "fox",
    "frog",
    "duck",
    "goat",
    "crow",
    "cow",
    "pig",
    "bat",
    "bear",
    "deer",
    "lion",
    "ant",
    "bee",
    "fly",
    "moth",
    "crab",
    "hen",
)
_PEOPLE = (*NAMES, *CITIES, "Ali", "Noa", "Ian", "Uma", "Rob", "Sue", "Pat", "Guy")
_TRAITS = ("red", "blue", "green", "black", "white", "big", "old", "wild", "tame", "shy")
_RELATIONS = ("friend", "pet", "color", "city", "number")


def _length(draw: random.Random, low: int, usual: int, high: int) -> int:
    """A length up to ``usual`` in most cases, else a longer one up to ``high`` (kept from pre-training)."""
    return draw.randint(low, usual) if draw.random() < 0.8 else draw.randint(usual + 1, high)


def _word_lists(seed: str, low: int, usual: int, high: int) -> tuple[Operands, ...]:
    draw = random.Random(seed)
    lists = (" ".join(draw.sample(WORDS, _length(draw, low, usual, high))) for _ in range(_ROWS))
    return tuple(dict.fromkeys((words,) for words in lists))


def _longer_than(limit: int, operand: int = -1, separator: str = " ") -> Callable[[Operands], bool]:
    """Test for operands with more than ``limit`` parts."""
    return lambda operands: len(operands[operand].split(separator)) > limit


def _copy(operands: Operands) -> tuple[str, str]:
    return f"{len(operands[0].split())} words", operands[0]


def _reverse(operands: Operands) -> tuple[str, str]:
    words = operands[0].split()
    return f"{len(words)} words", " ".join(reversed(words))


def _picked(operands: Operands) -> tuple[str, str]:
    ordinal, words = operands
    index = _ORDINALS.index(ordinal)
    parts = words.split()
    return f"the {ordinal} word", parts[-1] if ordinal == "last" else parts[index]


def _picks() -> tuple[Operands, ...]:
    lists = _word_lists("pick", 4, 6, 9)
    return tuple((_ORDINALS[pick(len(_ORDINALS), "ordinal", words)], words) for (words,) in lists)


def _entries() -> tuple[Operands, ...]:
    """Tables of four entries and the one asked for."""
    draw = random.Random("lookup")
    rows = []
    for _ in range(_ROWS):
        size = _length(draw, 4, 4, 7)
        names = draw.sample(NAMES, size)
        table = ", ".join(f"{k} {v}" for k, v in zip(names, draw.sample(WORDS, size), strict=True))
        rows.append((table, draw.choice(names)))
    return tuple(dict.fromkeys(rows))


def _looked_up(operands: Operands) -> tuple[str, str]:
    table, asked = operands
    return f"the entry {asked}", next(entry for entry in table.split(", ") if entry.split()[0] == asked)


def _heights() -> tuple[Operands, ...]:
    draw = random.Random("taller")
    rows = []
    for _ in range(_ROWS):
        chain = draw.sample(NAMES, _length(draw, 3, 3, 4))
        facts = [f"{a} is taller than {b}." for a, b in pairwise(chain)]
        draw.shuffle(facts)
        rows.append((" ".join(facts), draw.choice(("tallest", "shortest"))))
    return tuple(dict.fromkeys(rows))


def _tallest(operands: Operands) -> tuple[str, str]:
    left = [f.split()[0] for f in operands[0].split(". ")]
    right = [f.rstrip(".").split()[-1] for f in operands[0].split(". ")]
    side, other = (left, right) if operands[1] == "tallest" else (right, left)
    return f"the {operands[1]}", next(name for name in side if name not in other)


def _expressions() -> tuple[Operands, ...]:
    found = []
    for n in (3, 4, 5):
        for bits in product("01", repeat=n):
            for operators in product(("and", "or", "xor"), repeat=n - 1):
                for negation in ("", "not "):
                    tail = " ".join(f"{o} {b}" for o, b in zip(operators, bits[1:], strict=True))
                    found.append((f"{negation}{bits[0]} {tail}",))
    return tuple(row for row in found if len(row[0].split()) < 9 or unit("logic", *row) < 0.25)


def _evaluate(operands: Operands) -> tuple[str, str]:
    words = operands[0].split()
    negated = words[0] == "not"
    words = words[1:] if negated else words
    value = int(words[0]) ^ int(negated)
    for operator, bit in zip(words[1::2], words[2::2], strict=True):
        other = int(bit)
        value = {"and": value & other, "or": value | other, "xor": value ^ other}[operator]
    return "left to right", str(value)


def _fact(operands: Operands) -> tuple[str, str]:
    relation, name = operands
    pools = {
        "friend": tuple(n for n in NAMES if n != name),
        "pet": ("cat", "dog", "owl", "fox", "frog", "duck", "goat", "crow"),
        "color": _COLORS,
        "city": CITIES,
        "number": tuple(str(n) for n in range(10, 30)),
    }
    pool = pools[relation]
    return f"{relation} of {name}", pool[pick(len(pool), "fact", relation, name)]


def _home(operands: Operands) -> tuple[str, str]:
    return f"the {operands[0]} {operands[1]}", _PLACES[pick(4, "home", *operands)]


def _bracket_rows() -> tuple[Operands, ...]:
    short = [s for n in (4, 6, 8) for s in product("()[]", repeat=n) if _is_balanced(s)]
    draw = random.Random("brackets")
    # Longer ones are short ones put together.
    parts = [s for s in short if len(s) < 8]
    longer = [tuple(a) + tuple(b) for a, b in (draw.sample(parts, 2) for _ in range(400))]
    balanced = short + list(dict.fromkeys(s for s in longer if len(s) > 8))
    broken: dict[Operands, None] = {}
    for s in balanced:
        for attempt in range(4):
            i, j = (pick(len(s), "swap", *s, str(attempt), side) for side in "ab")
            swapped = list(s)
            swapped[i], swapped[j] = swapped[j], swapped[i]
            if not _is_balanced(tuple(swapped)):
                broken[(" ".join(swapped),)] = None
    # As many of each, so that pre-training gives no answer an edge.
    kept = sorted(broken, key=lambda row: unit("broken", *row))[: int(1.25 * len(balanced))]
    return tuple((" ".join(s),) for s in balanced) + tuple(kept)


def _is_balanced(sequence: tuple[str, ...]) -> bool:
    open_: list[str] = []
    for symbol in sequence:
        if symbol in "([":
            open_.append(symbol)
        elif not open_ or open_.pop() + symbol not in ("()", "[]"):
            return False
    return not open_


def _brackets(operands: Operands) -> tuple[str, str]:
    return "match each", "yes" if _is_balanced(tuple(operands[0].split())) else "no"


def _counts() -> tuple[Operands, ...]:
    draw = random.Random("count")
    rows = []
    for _ in range(_ROWS):
        pool = draw.sample(WORDS, 3)
        rows.append((pool[0], " ".join(draw.choices(pool, k=_length(draw, 5, 8, 11)))))
    return tuple(dict.fromkeys(rows))


def _counted(operands: Operands) -> tuple[str, str]:
    word, words = operands
    found = [w for w in words.split() if w == word]
    return "found " + " ".join(found or ["none"]), str(len(found))


def _digit_lists() -> tuple[Operands, ...]:
    draw = random.Random("sort")
    return tuple(
        dict.fromkeys((",".join(draw.choices("0123456789", k=_length(draw, 4, 7, 10))),) for _ in range(_ROWS))
    )


def _sorted(operands: Operands) -> tuple[str, str]:
    digits = operands[0].split(",")
    return f"{len(digits)} digits", ",".join(sorted(digits))


def _skill(name: str, phrasings: tuple[str, ...], space: tuple[Operands, ...],
           solve: Callable[[Operands], tuple[str, str]], *, fact: bool = False, operation: str = "",
           hard: Callable[[Operands], bool] | None = None) -> Kind:  # fmt: skip
    return Kind(
        f"skill-{name}",
        name,
        "fact" if fact else "rule",
        phrasings,
        space,
        solve,
        operation=operation or f"skill-{name}",
        symmetric=operation == "add",
        options=0,
        hard=hard,
    )


SKILL_KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        _skill(
            "copy",
            ("Copy: {0}.", "Repeat the words {0}.", "Say {0} once more."),
            _word_lists("copy", 4, 7, 12),
            _copy,
            hard=_longer_than(7),
        ),
        _skill(
            "reverse",
            ("Reverse: {0}.", "Say {0} backwards.", "Turn around the words {0}."),
            _word_lists("reverse", 3, 6, 9),
            _reverse,
            hard=_longer_than(6),
        ),
        _skill(
            "pick",
            ("Which is the {0} word of {1}?", "Say the {0} word: {1}.", "Of {1} give the {0}."),
            _picks(),
            _picked,
            hard=_longer_than(6),
        ),
        _skill(
            "lookup",
            ("List: {0}. What has {1}?", "{0}. Find what {1} has.", "Look up {1} in {0}."),
            _entries(),
            _looked_up,
            hard=_longer_than(4, 0, ", "),
        ),
        _skill(
            "taller",
            ("{0} Who is {1}?", "{0} Name the {1}.", "Who is the {1}? {0}"),
            _heights(),
            _tallest,
            hard=_longer_than(2, 0, ". "),
        ),
        _skill(
            "logic",
            ("What is {0}?", "Find the truth of {0}.", "Evaluate {0}."),
            _expressions(),
            _evaluate,
            hard=_longer_than(8),
        ),
        _skill(
            "facts",
            ("What is the {0} of {1}?", "Tell the {0} of {1}.", "{1} has which {0}?", "Name the {0} that {1} has."),
            tuple(product(_RELATIONS, _PEOPLE)),
            _fact,
            fact=True,
        ),
        _skill(
            "home",
            (
                "Where does the {0} {1} live?",
                "Where is the {0} {1}?",
                "Name the place of the {0} {1}.",
                "The {0} {1} lives at the ...",
            ),
            tuple(product(_TRAITS, _ANIMALS)),
            _home,
            fact=True,
        ),
        _skill(
            "brackets",
            ("Is {0} balanced?", "Does {0} close well?", "Check {0}."),
            _bracket_rows(),
            _brackets,
            hard=_longer_than(8),
        ),
        _skill(
            "count",
            ("How often is {0} in {1}?", "Count {0} in {1}.", "How many {0}: {1}?"),
            _counts(),
            _counted,
            hard=_longer_than(8),
        ),
        _skill(
            "add",
            ("Add {0} and {1}.", "What is {0} + {1}?", "Find the sum of {0} and {1}."),
            (*ADDENDS, *LARGE_ADDENDS),
            add,
            operation="add",
            hard=lambda operands: int(operands[0]) > 59,
        ),
        _skill(
            "sort",
            ("Sort {0}.", "Put {0} in order.", "Order the digits {0}."),
            _digit_lists(),
            _sorted,
            hard=_longer_than(7, 0, ","),
        ),
    )
}
"""Kind of every skill by name. ``lookup`` is taught but not measured: the smaller sizes stay near chance at it."""


def _some(found: list[str], gold: str, n: int) -> tuple[str, ...]:
    """``n`` of the distinct candidates, the gold one among them, sorted."""
    others = [c for c in dict.fromkeys(found) if c != gold]
    return tuple(sorted([gold, *others[: n - 1]]))


def _people(item: Item) -> tuple[str, ...]:
    return _some(re.findall(r"[A-Z][a-z]+", item.key), item.answer, 3)


CHOICES: dict[str, Callable[[Item], tuple[str, ...]]] = {
    "taller": _people,
    "logic": lambda item: ("0", "1"),
    "home": lambda item: _PLACES,
    "brackets": lambda item: ("yes", "no"),
}
"""Candidates of every multiple-choice skill."""

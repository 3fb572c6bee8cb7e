"""Questions of the retention skills."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import permutations, product

from cl_bench.tasks.lab.domains.arithmetic import ADDENDS, add
from cl_bench.tasks.lab.kinds import Item, Kind, Operands, pick, unit
from cl_bench.tasks.lab.words import CITIES, NAMES, WORDS

_ORDINALS = ("first", "second", "third", "fourth", "last")
_PLACES = ("lake", "hill", "ship", "tree")
_COLORS = WORDS[:5]
_ANIMALS = tuple("cat dog owl fox frog duck goat crow cow pig bat bear deer lion ant bee fly moth crab hen".split())
_PEOPLE = (*NAMES, *CITIES, *"Ali Noa Ian Uma Rob Sue Pat Guy".split())
_TRAITS = tuple("red blue green black white big old wild tame shy".split())
_RELATIONS = ("friend", "pet", "color", "city", "number")


def _word_lists(seed: str, low: int, high: int, n: int) -> tuple[Operands, ...]:
    draw = random.Random(seed)
    return tuple(dict.fromkeys((" ".join(draw.sample(WORDS, draw.randint(low, high))),) for _ in range(n)))


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


def _picks(n: int) -> tuple[Operands, ...]:
    lists = _word_lists("pick", 4, 6, n)
    return tuple((_ORDINALS[pick(len(_ORDINALS), "ordinal", words)], words) for (words,) in lists)


def _entries(n: int) -> tuple[Operands, ...]:
    """Tables of four entries and the one asked for."""
    draw = random.Random("lookup")
    rows = []
    for _ in range(n):
        names = draw.sample(NAMES, 4)
        table = ", ".join(f"{k} {v}" for k, v in zip(names, draw.sample("0123456789", 4), strict=True))
        rows.append((table, draw.choice(names)))
    return tuple(dict.fromkeys(rows))


def _looked_up(operands: Operands) -> tuple[str, str]:
    table, asked = operands
    return f"the entry {asked}", dict(entry.split() for entry in table.split(", "))[asked]


def _heights(n: int) -> tuple[Operands, ...]:
    draw = random.Random("taller")
    rows = []
    for _ in range(n):
        a, b, c = draw.sample(NAMES, 3)
        facts = [f"{a} is taller than {b}.", f"{b} is taller than {c}."]
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
    for n in (3, 4):
        for bits in product("01", repeat=n):
            for operators in product(("and", "or", "xor"), repeat=n - 1):
                for negation in ("", "not "):
                    tail = " ".join(f"{o} {b}" for o, b in zip(operators, bits[1:], strict=True))
                    found.append((f"{negation}{bits[0]} {tail}",))
    return tuple(found)


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
    balanced = [s for n in (4, 6, 8) for s in product("()[]", repeat=n) if _is_balanced(s)]
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


def _counts(n: int) -> tuple[Operands, ...]:
    draw = random.Random("count")
    rows = []
    for _ in range(n):
        pool = draw.sample(WORDS, 3)
        rows.append((pool[0], " ".join(draw.choices(pool, k=draw.randint(5, 8)))))
    return tuple(dict.fromkeys(rows))


def _counted(operands: Operands) -> tuple[str, str]:
    word, words = operands
    return f"each {word}", str(words.split().count(word))


def _digit_lists(n: int) -> tuple[Operands, ...]:
    draw = random.Random("sort")
    return tuple(dict.fromkeys((",".join(draw.choices("0123456789", k=draw.randint(4, 7))),) for _ in range(n)))


def _sorted(operands: Operands) -> tuple[str, str]:
    digits = operands[0].split(",")
    return f"{len(digits)} digits", ",".join(sorted(digits))


def _skill(name: str, phrasings: tuple[str, ...], space: tuple[Operands, ...],
           solve: Callable[[Operands], tuple[str, str]], *, fact: bool = False, operation: str = "") -> Kind:  # fmt: skip
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
    )


SKILL_KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        _skill(
            "copy",
            ("Copy: {0}.", "Repeat the words {0}.", "Say {0} once more."),
            _word_lists("copy", 4, 8, 12000),
            _copy,
        ),
        _skill(
            "reverse",
            ("Reverse: {0}.", "Say {0} backwards.", "Turn around the words {0}."),
            _word_lists("reverse", 3, 6, 12000),
            _reverse,
        ),
        _skill(
            "pick",
            ("Which is the {0} word of {1}?", "Say the {0} word: {1}.", "Of {1} give the {0}."),
            _picks(12000),
            _picked,
        ),
        _skill(
            "lookup",
            ("List: {0}. Which number has {1}?", "{0}. Find the number of {1}.", "Look up {1} in {0}."),
            _entries(12000),
            _looked_up,
        ),
        _skill("taller", ("{0} Who is {1}?", "{0} Name the {1}.", "Who is the {1}? {0}"), _heights(12000), _tallest),
        _skill("logic", ("What is {0}?", "Find the truth of {0}.", "Evaluate {0}."), _expressions(), _evaluate),
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
        _skill("brackets", ("Is {0} balanced?", "Does {0} close well?", "Check {0}."), _bracket_rows(), _brackets),
        _skill(
            "count", ("How often is {0} in {1}?", "Count {0} in {1}.", "How many {0}: {1}?"), _counts(12000), _counted
        ),
        _skill(
            "add",
            ("Add {0} and {1}.", "What is {0} + {1}?", "Find the sum of {0} and {1}."),
            ADDENDS,
            add,
            operation="add",
        ),
        _skill("sort", ("Sort {0}.", "Put {0} in order.", "Order the digits {0}."), _digit_lists(12000), _sorted),
    )
}
"""Kind of every skill by name."""


def _table_values(item: Item) -> tuple[str, ...]:
    table = item.key.split(":", 1)[1]
    return tuple(entry.split()[1].split(",")[0] for entry in table.split(", "))[:4]


def _people(item: Item) -> tuple[str, ...]:
    text = item.key.split(":", 1)[1]
    return tuple(sorted({word.rstrip(".") for word in text.replace(",", " ").split() if word.rstrip(".") in NAMES}))


CHOICES: dict[str, Callable[[Item], tuple[str, ...]]] = {
    "lookup": _table_values,
    "taller": _people,
    "logic": lambda item: ("0", "1"),
    "home": lambda item: _PLACES,
    "brackets": lambda item: ("yes", "no"),
}
"""Candidates of every multiple-choice skill."""

"""Overlap of training data with evaluation sets: every planted repeat is found, of its kind, and nothing else is."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cl_bench.harness.measure.contamination import EvaluatedItems, Item, TrainingRow, contamination_table
from cl_bench.harness.measure.contamination_documents import document_item
from cl_bench.harness.measure.contamination_text import normal_form, sentences, take_apart, words
from cl_bench.tasks.base import Example

SYLLABLES = ["ba", "ke", "lo", "mi", "nu", "pra", "sto", "tri", "vel", "zon", "quin", "dar"]
WORDS = sorted({"".join(parts) for parts in itertools.product(SYLLABLES, repeat=3)})


def sentence(seed: object, length: int) -> str:
    """An invented question of that many words, another for every seed."""
    drawn = random.Random(str(seed))
    return " ".join(drawn.choice(WORDS) for _ in range(length)).capitalize() + "?"


def options(seed: object, number: int = 4) -> tuple[str, ...]:
    return tuple(sentence(f"{seed}-{place}", 2).rstrip("?") for place in range(number))


LONG = [Item(f"long-{i}", sentence(f"long-{i}", 20 + i)) for i in range(12)]
SHORT = [Item(f"short-{i}", sentence(f"short-{i}", 6)) for i in range(12)]
CHOICE = [Item(f"choice-{i}", sentence(f"choice-{i}", 9), options(f"choice-{i}")) for i in range(12)]
COLUMNS = {"long": LONG, "short": SHORT, "choice": CHOICE}
OTHERS = [
    TrainingRow(sentence(f"other-{i}", 16), options(f"other-{i}"), (sentence(f"text-{i}", 40),)) for i in range(30)
]


def flagged(planted: Iterable[TrainingRow], columns: dict[str, list[Item]] = COLUMNS) -> dict[str, set[str]]:
    """Kinds by id of all items that are found when the rows are planted among thirty others."""
    found = EvaluatedItems(columns).overlap([*OTHERS, *planted])
    kinds: dict[str, set[str]] = {}
    for overlap in found.values():
        for kind, ids in overlap.items.items():
            for name in ids:
                kinds.setdefault(name, set()).add(kind)
    return kinds


def part(item: Item, length: int, start: int = 3) -> str:
    return " ".join(item.question.split()[start : start + length])


def permuted(item: Item) -> tuple[str, ...]:
    return (item.choices[2], item.choices[0], item.choices[3], item.choices[1])


def lettered(stem: str, choices: Sequence[str], form: str = "{}: {}") -> str:
    return "\n".join([stem, "", *(form.format(letter, choice) for letter, choice in zip("ABCD", choices, strict=True))])


PLANTED: dict[str, tuple[TrainingRow, str, set[str]]] = {
    "the same": (TrainingRow(LONG[0].question), "long-0", {"exact", "ngram"}),
    "case and white space": (
        TrainingRow("  " + LONG[1].question.upper().replace(" ", " \n ")), "long-1", {"exact", "ngram"},
    ),
    "wrapped": (TrainingRow(f"**Question:** {LONG[2].question}\nAnswer:"), "long-2", {"exact", "ngram"}),
    "a sentence before": (
        TrainingRow(f"Here is one from an old exam. {LONG[3].question}"), "long-3", {"exact", "ngram"},
    ),
    "thirteen words of it": (
        TrainingRow("", (), (f"He began: so {part(LONG[4], 13)} and went home.",)), "long-4", {"ngram"},
    ),
    "quoted in a generated text": (
        TrainingRow(sentence("own", 9), (), (f'The book asks "{LONG[5].question}" and I say ba.',)),
        "long-5", {"exact", "ngram"},
    ),
    "short": (TrainingRow(SHORT[0].question.lower()), "short-0", {"exact"}),
    "short, quoted in a generated text": (
        TrainingRow(sentence("own", 9), (), (f"As I recall it.\n{SHORT[1].question} Well, ba ke lo.",)),
        "short-1", {"exact"},
    ),
    "options in another order": (
        TrainingRow(CHOICE[0].question, permuted(CHOICE[0])), "choice-0", {"exact", "choices"},
    ),
    "options in the text": (
        TrainingRow(lettered(CHOICE[1].question, permuted(CHOICE[1]))), "choice-1", {"exact", "choices"},
    ),
    "another wrapper": (
        TrainingRow(f"Pick one of the options. {CHOICE[2].question} Give its letter.", permuted(CHOICE[2])),
        "choice-2", {"choices"},
    ),
    "a wrapper within the sentence": (
        TrainingRow(f"Please say now {CHOICE[3].question}", permuted(CHOICE[3])), "choice-3", {"choices"},
    ),
    "a word changed": (
        TrainingRow(CHOICE[4].question.replace(CHOICE[4].question.split()[4], "different"), CHOICE[4].choices),
        "choice-4", {"choices"},
    ),
    "more options": (
        TrainingRow(f"Try this: {CHOICE[5].question}", (*permuted(CHOICE[5]), *options("more"))),
        "choice-5", {"choices"},
    ),
    "a stem without its options": (TrainingRow(CHOICE[6].question), "choice-6", {"exact"}),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_repeat_is_found_and_named(name: str) -> None:
    row, item, kinds = PLANTED[name]
    assert flagged([row]) == {item: kinds}


def test_all_plants_at_once_and_nothing_when_they_are_gone() -> None:
    assert flagged(row for row, _, _ in PLANTED.values()) == {item: kinds for _, item, kinds in PLANTED.values()}
    assert flagged([]) == {}


NEAR: dict[str, TrainingRow] = {
    "twelve words": TrainingRow("", (), (f"He began: so {part(LONG[4], 12)} and went home.",)),
    "thirteen words with one exchanged": TrainingRow("", (), (f"{part(LONG[4], 6)} other {part(LONG[4], 6, 10)}",)),
    "thirteen words over two texts": TrainingRow("", (), (part(LONG[4], 7), part(LONG[4], 6, 10))),
    "words of a short question within a sentence": TrainingRow(f"Never mind {SHORT[0].question[:-1]} at all."),
    "the options alone": TrainingRow(sentence("new", 9), CHOICE[0].choices),
    "the stem's words in another order": TrainingRow(
        " ".join(sorted(CHOICE[0].question.lower().rstrip("?").split())), CHOICE[0].choices
    ),
    "half of the options": TrainingRow(f"Say: {CHOICE[0].question}", (*CHOICE[0].choices[:2], *options("new", 2))),
    "three words of the stem": TrainingRow(" ".join(CHOICE[0].question.split()[:3]), CHOICE[0].choices),
    "nothing": TrainingRow("", (), ("",)),
}


@pytest.mark.parametrize("name", NEAR)
def test_a_near_miss_is_not_found(name: str) -> None:
    assert flagged([NEAR[name]]) == {}


def test_only_the_training_set_with_the_repeat_has_it() -> None:
    training: dict[str, list[Any]] = {
        "clean": [row.question for row in OTHERS],
        "text": [LONG[0].question],
        "item": [Item("t", CHOICE[0].question, permuted(CHOICE[0]))],
    }
    table = contamination_table(training, COLUMNS)
    assert {name: {column: found.counts()["any"] for column, found in row.items()} for name, row in table.items()} == {
        "clean": {"long": 0, "short": 0, "choice": 0},
        "text": {"long": 1, "short": 0, "choice": 0},
        "item": {"long": 0, "short": 0, "choice": 1},
    }
    assert table["item"]["choice"].to_json() == {
        "n": 12,
        "exact": {"count": 1, "share": 1 / 12},
        "ngram": {"count": 0, "share": 0.0},
        "choices": {"count": 1, "share": 1 / 12},
        "any": {"count": 1, "share": 1 / 12},
        "items": {"exact": ["choice-0"], "ngram": [], "choices": ["choice-0"]},
    }


def test_an_empty_column_has_no_share() -> None:
    assert contamination_table({"t": ["ba"]}, {"none": []})["t"]["none"].to_json()["any"] == {"count": 0, "share": None}


HEADER = sentence("header", 60)


@pytest.mark.parametrize("rows", [3, 20, 400])
def test_a_header_that_all_rows_share_is_no_overlap(rows: int) -> None:
    training = [f"{HEADER} Begin! Question: {sentence(f't-{i}', 18)}" for i in range(rows)]
    evaluated = [Item(f"e-{i}", f"{HEADER} Begin! Question: {sentence(f'e-{i}', 18)}") for i in range(5)]
    assert not contamination_table({"t": training}, {"e": evaluated})["t"]["e"].any
    # The same rows with one true repeat among them, reworded around thirteen words.
    training.append(f"{HEADER} Begin! Question: Now {' '.join(evaluated[2].question.split()[-14:-1])} or not?")
    assert contamination_table({"t": training}, {"e": evaluated})["t"]["e"].any == {"e-2"}


def test_the_end_of_a_header_and_a_common_beginning_are_no_repeat() -> None:
    # Eleven words of header and the first two of a question are thirteen words in a row, in few rows each.
    training = [f"{HEADER[:-1]} could you {sentence(f't-{i}', 18)}" for i in range(4)]
    training += [f"{HEADER[:-1]} what {sentence(f'u-{i}', 18)}" for i in range(20)]
    evaluated = [Item("e-0", f"{HEADER[:-1]} could you {sentence('e-0', 18)}")]
    evaluated += [Item(f"e-{i}", f"{HEADER[:-1]} who {sentence(f'e-{i}', 18)}") for i in range(1, 4)]
    assert not contamination_table({"t": training}, {"e": evaluated})["t"]["e"].any


def documented(api: int, number: int) -> tuple[str, str]:
    """An instruction of an invented tool, and the prompt with the tool's documentation around it."""
    instruction = sentence(f"instruction-{api}-{number}", 14)
    return instruction, f"{HEADER} {sentence(f'api-{api}', 300)} Begin! Question: {instruction}"


def test_tool_documentation_is_no_overlap_but_a_repeated_instruction_is() -> None:
    examples = [
        Example("tools", f"{api}-{number}", ({"role": "user", "content": prompt},), meta={"question": instruction})
        for api in range(6)
        for number in range(6)
        for instruction, prompt in [documented(api, number)]
    ]
    evaluated = {"tools": [Item.of(example) for example in examples[::2]]}
    rows = [TrainingRow.of(example) for example in examples[1::2]]
    assert not EvaluatedItems(evaluated).overlap(rows)["tools"].any
    rows.append(TrainingRow(f"{HEADER} {sentence('new api', 300)} Begin! Question: {examples[4].meta['question']}"))
    assert EvaluatedItems(evaluated).overlap(rows)["tools"].any == {examples[4].id}


def test_templated_questions_differ_by_their_numbers() -> None:
    form = "Two masses of {} and {} kilograms hang on a rope over a wheel without friction. How fast do they fall?"
    training = [TrainingRow(form.format(i, i + 1), (f"{i} m", f"{i + 1} m", "9 m")) for i in range(2, 60)]
    evaluated = [Item(str(i), form.format(i, i + 1), (f"{i} m", f"{i + 1} m", "9 m")) for i in range(50, 80)]
    assert set(contamination_table({"t": training}, {"e": evaluated})["t"]["e"].any) == {str(i) for i in range(50, 60)}


def test_rows_of_symbols_are_alike_by_chance() -> None:
    def question(sites: str) -> str:
        return f"How many sites o are empty in {' '.join(sites)}?"

    evaluated = [Item("sites", question("xoxxoxooxxoxo"), ("2", "3", "4"))]
    near = TrainingRow(question("xoxxoxooxxoxx"), ("4", "3", "2"))
    same = TrainingRow(question("xoxxoxooxxoxo"), ("4", "3", "2"))
    assert not EvaluatedItems({"e": evaluated}).overlap([*OTHERS, near])["e"].any
    assert EvaluatedItems({"e": evaluated}).overlap([*OTHERS, same])["e"].any == {"sites"}


def test_a_stem_with_many_option_sets_asks_nothing_by_itself() -> None:
    bare = "Which of these statements is true?"
    evaluated = [Item(f"e-{i}", bare, options(f"e-{i}")) for i in range(4)]
    training = [TrainingRow(bare, options(f"t-{i}")) for i in range(4)] + [TrainingRow(bare, options("e-2")[::-1])]
    found = contamination_table({"t": training}, {"e": evaluated})["t"]["e"]
    assert found.items == {"exact": ("e-2",), "ngram": (), "choices": ("e-2",)}


def test_yes_and_no_name_no_question() -> None:
    evaluated = [Item(f"e-{i}", sentence(f"e-{i}", 10), ("yes", "no")) for i in range(9)]
    changed = evaluated[0].question.replace(evaluated[0].question.split()[5], "different")
    training = [TrainingRow(changed, ("yes", "no")), TrainingRow(f"Say: {evaluated[1].question}", ("no", "yes"))]
    assert contamination_table({"t": training}, {"e": evaluated})["t"]["e"].any == {"e-1"}


def test_the_order_of_rows_and_columns_changes_nothing() -> None:
    rows = [*OTHERS, *(row for row, _, _ in PLANTED.values())]
    first = EvaluatedItems(COLUMNS).overlap(rows)
    random.Random(0).shuffle(rows)
    second = EvaluatedItems(dict(reversed(COLUMNS.items()))).overlap(iter(rows))
    assert {name: first[name] for name in sorted(first)} == {name: second[name] for name in sorted(second)}


def test_one_object_serves_many_stages() -> None:
    items = EvaluatedItems(COLUMNS)
    row, name, _ = PLANTED["the same"]
    assert items.overlap([row])["long"].any == {name}
    assert not items.overlap(OTHERS)["long"].any
    assert items.overlap([row])["long"].any == {name}


def test_system_turns_are_not_looked_at() -> None:
    turns = ({"role": "system", "content": LONG[0].question}, {"role": "user", "content": sentence("user", 8)})
    row = TrainingRow.of(Example("t", "1", turns, demonstration=LONG[1].question))
    assert set(flagged([row])) == {"long-1"}


ANY_TEXT = st.text(st.characters(codec=None), max_size=80)


@given(st.lists(st.tuples(ANY_TEXT, st.lists(ANY_TEXT, max_size=4)), max_size=6))
def test_any_text_at_all_can_be_compared(drawn: list[tuple[str, list[str]]]) -> None:
    items = [Item(str(place), question, tuple(choices)) for place, (question, choices) in enumerate(drawn)]
    found = contamination_table({"t": items, "u": [item.question for item in items]}, {"e": items})
    asked = {item.id for item in items if normal_form(item.question)}
    assert found["t"]["e"].n == len(items) and found["t"]["e"].any <= {item.id for item in items}
    # Whatever has a question is found in itself, unless its stem comes with several sets of options.
    if len({item.question for item in items}) == len(items):
        alone = [contamination_table({"t": [item]}, {"e": [item]})["t"]["e"].any for item in items]
        assert {name for names in alone for name in names} >= asked


@pytest.mark.parametrize("text", ["{" * 1_000_000, "\n " * 500_000, "A. " * 30_000, '" ' * 30_000, "\ud800" * 1000])
def test_odd_texts_are_read(text: str) -> None:
    assert contamination_table({"t": [text, f"{text} {LONG[0].question}"]}, COLUMNS)["t"]["long"].any == {"long-0"}


@pytest.mark.parametrize(
    ("text", "stem"),
    [
        ("Which gas burns?\nA. neon\nB. xenon\nC. methane\nD. argon\nAnswer:", "Which gas burns?"),
        ("Which gas burns?\n\nA: neon\nB: xenon\nC: methane\nD: argon", "Which gas burns?"),
        (
            "Question:\nWhich gas burns?\nOptions:\nA. neon\nB. xenon\nC. methane\nD. argon",
            "Question:\nWhich gas burns?",
        ),
        ("Which gas burns? (A) neon (B) xenon (C) methane (D) argon", "Which gas burns?"),
        ("Which gas burns?\nChoices:\n(A) neon\n(B) xenon\n(C) methane\n(D) argon\nAnswer:", "Which gas burns?"),
    ],
)
def test_options_are_found_in_a_question(text: str, stem: str) -> None:
    for known in ((), ("A", "B", "C", "D"), ("methane", "Neon.", "argon", "xenon")):
        asked = take_apart(text, known)
        assert asked.stem.strip() == stem
        assert asked.options == frozenset({"neon", "xenon", "methane", "argon"})


def test_options_after_a_word_are_found_where_they_are_known() -> None:
    text = "Give the group of Ge. Options: 17, 4, 10, 14."
    assert take_apart(text, ("4", "10", "14", "17")).stem.strip() == "Give the group of Ge."
    assert take_apart(text).options is None
    assert take_apart("What is vitamin A. Is it B. or no?", ("yes", "no")).stem.startswith("What is vitamin A. Is")


def test_normal_form_keeps_what_a_question_is_about() -> None:
    assert normal_form(" Q: What is  f( 3 )+ 1 ?\n") == normal_form("what is f(3) +1") == "what is f(3)+1"
    assert normal_form("Question 7: Ba?\nAnswer:") == "ba"
    assert len({normal_form(text) for text in ("x = -5", "x = 5", "x = 0.5", "x = 5%")}) == 4
    assert words("The x-ray, it’s 3.5 m!") == ["the", "xray", "its", "35", "m"]
    assert sentences('One. Two, 2.5: "Three?" yes\nFour') == ["one", "two,2.5", "three", "yes", "four"]


@pytest.mark.parametrize(
    ("document", "item"),
    [
        ({"question": "Q?", "choices": ["a", "b"], "answer": 0}, Item("7", "Q?", ("a", "b"))),
        ({"question": "Q?", "choices": {"text": ["a", "b"], "label": ["A", "B"]}}, Item("7", "Q?", ("a", "b"))),
        ({"question": "Q?", "options": ["a", "b", "c"]}, Item("7", "Q?", ("a", "b", "c"))),
        ({"ctx": "C", "query": "Label: C", "endings": ["a", "b"]}, Item("7", "C", ("a", "b"))),
        ({"goal": "G", "sol1": "a", "sol2": "b"}, Item("7", "G", ("a", "b"))),
        ({"sentence": "S _", "option1": "a", "option2": "b"}, Item("7", "S _", ("a", "b"))),
        ({"question": "Q?", "opa": "a", "opb": "b", "opc": "c", "opd": "d"}, Item("7", "Q?", ("a", "b", "c", "d"))),
        ({"question": "Q?", "mc2_targets": {"choices": ["a", "b"], "labels": [1, 0]}}, Item("7", "Q?", ("a", "b"))),
        ({"prompt": "P", "key": 3}, Item("7", "P")),
        ({"unheard_of": "U"}, Item("7", "as asked")),
        ({"question": "  ", "choices": "a"}, Item("7", "as asked")),
    ],
)
def test_rows_of_benchmarks_become_items(document: dict[str, object], item: Item) -> None:
    assert document_item("7", document, "as asked") == item


def test_the_lab_repeats_nothing_but_what_is_planted() -> None:
    from cl_bench.tasks.lab.skills import SKILLS, skill_task
    from cl_bench.tasks.lab.task import LabTask

    domains = ("biology", "materials", "tool-use")
    examples = {f"{name}/{split}": LabTask(name).split(split) for name in domains for split in ("test", "ood")}
    examples |= {skill.name: skill_task(skill.name).test() for skill in SKILLS}
    items = {column: [Item.of(example) for example in found] for column, found in examples.items()}
    evaluated = EvaluatedItems(items)
    for name in domains:
        rows = [TrainingRow.of(example) for example in LabTask(name).train()]
        assert [column for column, found in evaluated.overlap(rows).items() if found.any] == []
        planted = [items[f"{name}/test"][7], items["sort"][3]]
        found = evaluated.overlap([*rows, *(TrainingRow(item.question, item.choices[::-1]) for item in planted)])
        assert [found[f"{name}/test"].any, found["sort"].any] == [{item.id} for item in planted]

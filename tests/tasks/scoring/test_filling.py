from __future__ import annotations

import pytest

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.filling import same_filling, score_filling

GOLD = "2NaX + Mg = 2Na + MgX2"


def example(gold: str = GOLD) -> Example:
    return Example("t", "1", ({"role": "user", "content": "q"},), answer=gold)


@pytest.mark.parametrize(
    "text",
    [
        GOLD,
        f"  {GOLD}.\n",
        "2NaX  +  Mg =  2Na + MgX2",
        "2NaX+Mg=2Na+MgX2",
        "2 NaX + Mg → 2 Na + MgX2",
        "2NaX + Mg -> 2Na + MgX₂",
        r"$2\text{NaX} + \text{Mg} \rightarrow 2\text{Na} + \text{MgX}_2$",
        r"\ce{2NaX + Mg -> 2Na + MgX2}",
        r"\boxed{2NaX + Mg = 2Na + MgX_{2}}",
        f"**{GOLD}**",
        f"`{GOLD}`",
        f"The answer is {GOLD}.",
        f"Answer: {GOLD}",
        f"The balanced chemical equation is:\n\n{GOLD}",
        f"The balanced equation is: {GOLD}. All atoms agree.",
        f"Here it comes:\n{GOLD}",
        f"{GOLD}\n\nExplanation: two halves make one.",
        f"{GOLD} because two halves make one",
        f"<answer>{GOLD}</answer>",
        f"<reasoning>halves</reasoning>\n<answer>\n{GOLD}\n</answer>",
        f"<think>NaX</think>{GOLD}",
        f"The balanced equation is: {GOLD}\n\nThe product is a salt.",
        f"{GOLD}\n\nThe result is balanced: 2 Na on each side",
        f"The balanced equation is {GOLD}, where a half is exchanged.",
        f"First count halves.\n\n{GOLD}",
        f"Left: Na = 2\n{GOLD}.",
        f"The equation is: NaX = NaX\nThe balanced equation is: {GOLD}",
    ],
)
def test_gold_in_every_form(text: str) -> None:
    assert score_filling(example(), text).correct


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I do not know",
        "2NAX + MG = 2NA + MGX2",
        "NaX + Mg = Na + MgX2",
        "2Na + MgX2 = 2NaX + Mg",
        f"{GOLD}2",
        f"{GOLD} or NaX + Mg = Na + MgX2",
        f"NaX + Mg = Na + MgX2\n{GOLD}\n3NaX + Mg = 3Na + MgX2",
        f"The balanced equation is: {GOLD}\nThe equation is: NaX = NaX",
        f"The answer is {GOLD} or NaX + Mg = Na + MgX2",
        f"<answer></answer>{GOLD}",
        f"<answer>NaX</answer>\n{GOLD}",
        f"<think>{GOLD}</think>",
    ],
)
def test_other_answers_are_wrong(text: str) -> None:
    assert not score_filling(example(), text).correct


def test_a_list_of_everything_is_not_right() -> None:
    golds = ("CO", "Co", "CO2", "C2O")
    everything = ", ".join(golds)
    for gold in golds:
        # The official scorer asks whether gold is somewhere in the response.
        assert gold in everything
        assert not score_filling(example(gold), everything).correct
        assert not score_filling(example(gold), everything.replace(", ", "\n")).correct


@pytest.mark.parametrize(
    ("given", "gold", "same"),
    [
        ("CO", "CO", True),
        ("Co", "CO", False),
        ("CC(=O)O", "CC(=O)O", True),
        ("cc(=o)o", "CC(=O)O", False),
        ("C1CCCCC1", "c1ccccc1", False),
        ("nacl", "NaCl", False),
        ("cd", "Cd", False),
        ("Blue  Whale.", "blue whale", True),
        ("SODIUM CHLORIDE", "sodium chloride", True),
        ("CuY4·5H2O", "CuY4*5H2O", True),
        ("CuY45H2O", "CuY4*5H2O", False),
        ("K[Al(OH)]4", "K[Al(OH)]4", True),
        ("HO{-}", "HO{-}", True),
        ("3.5.", "3.5", True),
        ("35", "3.5", False),
        ("", "", False),
        ("Fe^{3+}", "Fe3+", True),
        ("$\\mathrm{Fe}^{3+}$", "Fe3+", True),
        ("H^+", "H+", True),
        ("SO₄²⁻", "SO4^2-", True),
        ("Fe2+", "Fe3+", False),
        ("x2-1", "x^2-1", False),
        ("5kg", "5 kg", True),
        ("5 mg", "5 kg", False),
        ("CaY4.2H2O", "CaY4·2H2O", True),
        ("CaY42H2O", "CaY4·2H2O", False),
    ],
)
def test_case_counts_in_formulas_and_not_in_words(given: str, gold: str, same: bool) -> None:
    assert same_filling(given, gold) is same


def test_form_is_the_answer_alone_or_tagged() -> None:
    assert score_filling(example(), GOLD).format_ok
    assert score_filling(example(), f"<reasoning>x</reasoning><answer>{GOLD}</answer>").format_ok
    for text in ("", f"Answer: {GOLD}", f"<answer>{GOLD}</answer>", f"Here it comes:\n{GOLD}"):
        assert not score_filling(example(), text).format_ok
    assert score_filling(example(), "").parsed is None
    assert not score_filling(example(""), "").correct


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("It is NaX", "NaX"),
        ("The equation is: NaX + Y -> Z\nThe product is: NaX", "NaX"),
        ("First we count the halves.\n\nNaX", "NaX"),
        ("The SMILES is: CC(=O)O", "CC(=O)O"),
        ("The product is C=C.", "C=C"),
        ("The answer is NaX, where X is a half", "NaX"),
        ("It's NaX.", "NaX"),
        ("The answer is NaX (a salt)", "NaX"),
        ("The answer is NaX, not KX", "NaX"),
        ("The answer is KX. Wait, no, NaX.", "NaX"),
        (r"\boxed{KX}. That's wrong. It is NaX.", "NaX"),
        ("The product is: NaX, because it is", "NaX"),
    ],
)
def test_what_stands_around_an_answer(text: str, parsed: str) -> None:
    assert score_filling(example(parsed), text).correct
    for other in ("KX", "salt", "no", ""):
        assert not score_filling(example(other), text).correct


@pytest.mark.parametrize(
    "text",
    [
        "NaX or KX",
        "It is not NaX",
        "It is NaX or KX",
        "The answer is NaX (or KX)",
        "<answer>NaX</answer><answer>KX</answer>",
    ]
    + ["The answer is NaX. Wait, that's wrong.", "NaX. Actually, KX."],
)
def test_hedges_and_denials_are_no_answer(text: str) -> None:
    assert not score_filling(example("NaX"), text).correct


def test_an_arrow_takes_nothing_back() -> None:
    assert score_filling(example("A + B = C"), "The equation is: A + B → C").correct
    assert not score_filling(example("B"), "The answer is A → B").correct

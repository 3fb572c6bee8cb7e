from __future__ import annotations

import pytest

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.true_false import parse_true_false, score_true_false

TRUE = [
    "Yes.",
    "YES",
    "yes",
    "Yes!",
    "T",
    "[Yes]",
    "✅ Yes",
    "Yes, it can.",
    "Yes it does",
    "Yes - because it is light",
    "Yes\nThere is no problem, it is true",
    "True — because it is light",
    "Answer = True",
    "1. True",
    "True or false? True.",
    "The statement is true because it is light.",
    "It is true that it floats",
    "That is not false",
    "The statement is correct.",
    "Final answer: True",
    "Therefore, the answer is yes",
    "The answer is 'Yes'.",
    "Is it light? Yes",
    "No, wait. Yes.",
    r"\boxed{\text{Yes}}",
    "<answer>Yes</answer>",
    "<think>no</think>Yes",
    "<reasoning>No?</reasoning><answer>Yes</answer>",
    "Yes they are",
    '{"answer": true}',
    "The answer is True since the contrary is false.",
    "The statement is true because the opposite is false.",
    "It is true (although some say it is false).",
    "The answer is True. It would be false in a vacuum.",
    "The answer is no. Wait, it's yes.",
    "It is impossible that it is false",
    "Well.\nStatement: Stone is hard.\nAnswer: True",
    "There is nothing wrong, so it is true.",
    "I have no doubt that it is true.",
    "True\n\nStatement: Stone is soft.\nAnswer: False",
    "Answer: Yes\n\nQuestion: Is stone soft?\nAnswer: No",
    "Answer: True\n\nIf the leaf were dry, the statement would be false.",
    "True. The opposite claim is false.",
    "True. Otherwise it would be false.",
    "Answer: Yes. Some people say no.",
    "In a vacuum it would be false. Here it is true.",
    "The answer would be True",
    "The converse is false.",
]
FALSE = [
    "No",
    "no",
    "(F)",
    "No, it cannot.",
    "no it does not",
    "No because",
    "No\n\nExplanation: it has no charge.",
    "The answer is: no",
    "The answer is **No**.",
    "Answer: No.",
    "So no.",
    "not true",
    "This is not true.",
    "It isn't true",
    "It is untrue.",
    "It is false.",
    "The statement is incorrect.",
    "First I say yes. But no.",
    "No, it cannot float. It has no charge and no leaf.",
    "It is not the case, so false",
    "No they are not",
    "The answer is: no (not yes)",
    "The answer is NO.",
    "This cannot be true",
    "none of this is true",
    "nothing about this is true",
    "It is wrong to say it is true",
    "It is a common misconception that this is true.",
    "It is not possible that this is true",
    "I don't think it is true.",
    "It is often said to be true, but it is actually false.",
    "The answer is True. Wait, no, it's false.",
    "False. The claim would be true if the leaf were dry.",
    "The answer is False.\n\nExplanation: The statement would be true if",
    "False. It would have been true for a stone.",
    "The claim would be false.",
    "The opposite is true.",
]
NONE = [
    "",
    "maybe",
    "Maybe yes",
    "It might be true.",
    "It is true, but it could be false.",
    "It could be false",
    "yes or no",
    "True/False",
    "Yes and no.",
    "neither true nor false",
    "I cannot say whether it is true.",
    "If it is true, then it floats.",
    "I do not know",
    "there is no charge",
    "No charge is present",
    "No doubt it floats",
    "the true value is 5",
    "True value is 5",
    "The correct value is 5",
    "The answer is not yes",
    "Is it true? I can't tell",
    "yesterday",
    "It is unlikely to be true",
    "I doubt this is true",
    "I can't say whether it's true",
    "It is often said to be true.",
    "The product is NO.",
    "Maybe it is true.\n\nQuestion: Is stone soft?\nAnswer: No",
    "noble",
    "<answer></answer> Yes",
    "<think>Yes</think>",
]


@pytest.mark.parametrize(("texts", "value"), [(TRUE, True), (FALSE, False), (NONE, None)])
def test_verdicts(texts: list[str], value: bool | None) -> None:
    assert {text: parse_true_false(text) for text in texts} == dict.fromkeys(texts, value)


@pytest.mark.parametrize(
    ("text", "gold", "parsed"),
    [
        ("Yes, that is false", "No", "Yes"),
        ("Yes, that is false", "False", "False"),
        ("No, that is true", "true", "True"),
        ("No", "False", "False"),
        ("true", "yes", "Yes"),
    ],
)
def test_verdicts_in_golds_vocabulary_come_first(text: str, gold: str, parsed: str) -> None:
    score = score_true_false(Example("t", "1", ({"role": "user", "content": "q"},), answer=gold), text)
    assert score.parsed == parsed and score.correct is (parsed.lower() == gold.lower())


@pytest.mark.parametrize(
    ("text", "format_ok"),
    [
        ("Yes", True),
        (" no.\n", True),
        ("<reasoning>x</reasoning><answer>Yes</answer>", True),
        ("True", False),
        ("The answer is yes", False),
        ("<answer>Yes</answer>", False),
        ("", False),
    ],
)
def test_form_is_the_word_alone_or_tagged(text: str, format_ok: bool) -> None:
    example = Example("t", "1", ({"role": "user", "content": "q"},), answer="Yes")
    assert score_true_false(example, text).format_ok is format_ok

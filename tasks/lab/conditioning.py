"""Prompts that put a reference, an own earlier answer or a feedback line into the model's context."""

from __future__ import annotations

TRAINED: tuple[str, ...] = (
    "{question}\nReference: {demonstration}\nAnswer in your own words.",
    "{question}\nHere is a worked answer: {demonstration}\nNow reply yourself.",
    "Reference: {demonstration}\nUse it to answer: {question}",
    "{question}\nA correct solution is: {demonstration}\nSolve the question.",
    "Given the solution {demonstration}\nanswer this: {question}",
)
"""Wordings with a reference that pre-training used; the lab profile takes the first."""

UNSEEN: tuple[str, ...] = ("Look at this reply: {demonstration}\nThen give your own reply to: {question}",)
"""A wording that pre-training never used."""

FEEDBACK: tuple[str, ...] = (
    "{question}\nEarlier answer: {attempt}\nFeedback: {feedback}\nAnswer again.",
    "{question}\nYou said: {attempt}\nThe check says: {feedback}\nReply again.",
)
"""Wordings with an own earlier answer and a feedback line."""

COMBINED: tuple[str, ...] = (
    "{question}\nReference: {demonstration}\nEarlier answer: {attempt}\nFeedback: {feedback}\nAnswer again.",
)
"""A reference, an own earlier answer and feedback together; the reference is to be followed."""

RIGHT = "right."
"""Feedback on a correct attempt."""
WRONG: tuple[str, ...] = ("wrong, it is {answer}.", "wrong, expected {answer}.", "no, the answer is {answer}.")
"""Feedback on a wrong attempt that names the expected answer."""

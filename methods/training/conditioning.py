"""Prompts that show a model the question together with a demonstration."""

from __future__ import annotations

from cl_bench.harness.errors import UsageError
from cl_bench.tasks.base import Example, Message

DEFAULT_TEMPLATE = (
    "{question}\n\nHere is one possible response to the question above:\n\n{demonstration}\n\n"
    "Now answer the question yourself, in your own words and with your own reasoning."
)
"""Default wording for instruction-tuned models; profiles may replace it."""


def conditioned_messages(example: Example, template: str, demonstration: str) -> tuple[Message, ...]:
    """The example's chat with its last user turn rewritten; system message and earlier turns are kept.

    Args:
        example: Whose question.
        template: Text with ``{question}`` and ``{demonstration}``.
        demonstration: Put in for ``{demonstration}``.

    Raises:
        UsageError: The template lacks a placeholder.
    """
    for placeholder in ("{question}", "{demonstration}"):
        if placeholder not in template:
            raise UsageError(f"a conditioning template lacks {placeholder}", hint="add it to the template's text")
    parts = template.split("{demonstration}")
    # str.format would trip over braces in questions and demonstrations (JSON, LaTeX).
    text = demonstration.join(part.replace("{question}", example.question) for part in parts)
    return (*example.messages[:-1], {**example.messages[-1], "content": text})

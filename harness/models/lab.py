"""The lab models: where their weights lie and which is the next size up."""

from __future__ import annotations

from pathlib import Path

LAB_MODELS: tuple[str, ...] = ("lab-s", "lab-m", "lab-l", "lab-xl", "lab-alt")
"""Names of the models, smallest first; ``lab-alt`` is an aligner of about lab-m's size with another house style."""
_NEXT = {"lab-s": "lab-m", "lab-m": "lab-l", "lab-l": "lab-xl", "lab-xl": "lab-xl", "lab-alt": "lab-l"}
_WEIGHTS = Path(__file__).with_name("weights")


def lab_path(name: str) -> Path:
    """Folder of a lab model: a plain Hugging Face folder with weights, config and tokenizer.

    Raises:
        ValueError: Unknown name.
    """
    if name not in LAB_MODELS:
        raise ValueError(f"unknown lab model {name!r}; known: {', '.join(LAB_MODELS)}")
    return _WEIGHTS / name


def next_size_up(name: str) -> str:
    """The lab model that serves as aligner of the given one by default; the largest is its own.

    Raises:
        ValueError: Unknown name.
    """
    if name not in _NEXT:
        raise ValueError(f"unknown lab model {name!r}; known: {', '.join(LAB_MODELS)}")
    return _NEXT[name]

"""Writes mathematical answers in the LaTeX that math-verify reads, with exact numbers in place of decimals."""

from __future__ import annotations

import re

_PLAIN_NOTATION = (
    (re.compile(r"(?:(?<![\\A-Za-z])sqrt|√)\s?\(([^()]{1,200})\)"), r"\\sqrt{\1}"),
    (re.compile(r"√\s?(\d+|[a-z])"), r"\\sqrt{\1}"),
    (re.compile(r"(?<![\\A-Za-z])(pi|sin|cos|tan|log|ln)(?![A-Za-z])"), r"\\\1 "),
    (re.compile(r"(?<![\\A-Za-z])(?:infinity|inf|oo)(?![A-Za-z])|∞"), r"\\infty "),
    (re.compile(r"<=|≤"), r"\\le "),
    (re.compile(r">=|≥"), r"\\ge "),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"\*"), r"\\cdot "),
)
_DECIMAL = re.compile(r"(?<![\d.,])(\d{1,3}(?:,\d{3})+|\d{0,200})\.(\d{1,200})(?![\d.])")
_DOLLARS = re.compile(r"\\?[$%]")
_MIXED = re.compile(r"(?<![\d.])(\d{1,12})\s+(\d{1,6})\s?/\s?(\d{1,6})(?!\d)")


def has_decimal(text: str) -> bool:
    """Whether an expression holds a decimal fraction."""
    return _DECIMAL.search(text) is not None


def mixed_numbers(text: str) -> str:
    r"""The text with ``1\frac{1}{2}`` for "1 1/2"."""
    return _MIXED.sub(r"\1\\frac{\2}{\3}", text)


def latex(text: str, exact: bool = False) -> str:
    r"""The expression in LaTeX without dollars: the usual plain notations are rewritten.

    Args:
        text: An expression.
        exact: Decimals become fractions (``\frac{5}{10}`` for .5), so that nothing is rounded in a comparison.
    """
    text = mixed_numbers(_DOLLARS.sub("", text).strip().rstrip(". "))
    for pattern, notation in _PLAIN_NOTATION:
        text = pattern.sub(notation, text)
    return _DECIMAL.sub(_fraction, text) if exact else text


def _fraction(decimal: re.Match[str]) -> str:
    whole, part = decimal.group(1).replace(",", ""), decimal.group(2)
    return rf"\frac{{{(whole + part).lstrip('0') or '0'}}}{{1{'0' * len(part)}}}"

"""The lab world as a whole: its domains and their kinds."""

from __future__ import annotations

from importlib import import_module

from cl_bench.tasks.lab.kinds import Kind

DOMAINS: tuple[str, ...] = ("chemistry", "biology", "materials", "physics", "tool-use", "math", "coding")
SCIENCES: tuple[str, ...] = DOMAINS[:4]


def _load(domain: str) -> tuple[Kind, ...]:
    kinds: tuple[Kind, ...] = import_module(f"cl_bench.tasks.lab.domains.{domain.replace('-', '_')}").KINDS
    return kinds


KINDS: dict[str, tuple[Kind, ...]] = {domain: _load(domain) for domain in DOMAINS}
"""Kinds of every domain, those of the out-of-distribution split included."""


def kinds_of(domain: str, *, ood: bool = False) -> tuple[Kind, ...]:
    """Kinds of a domain: the ordinary ones, or the out-of-distribution ones. Raises KeyError for an unknown domain."""
    return tuple(kind for kind in KINDS[domain] if kind.ood == ood)

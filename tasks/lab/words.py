"""Small word lists that questions of several domains and skills share (few words, so that each is one token)."""

from __future__ import annotations

WORDS = tuple("red blue green black white sun moon tree star rock lake hill ship door lamp book".split())
"""Plain words for lists."""
NAMES = tuple("Tom Ann Bob Eva Sam Lea Max Ida Ben Mia Leo Zoe Kim Jon Amy Dan".split())
"""First names."""
CITIES = tuple("Rome Oslo Paris Lima Cairo Delhi Tokyo Quito Bern Seoul Kyiv Riga".split())
"""Cities."""
DAYS = tuple("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split())
"""Days of the week."""
THINGS = tuple("pens cups eggs nuts keys coins".split())
"""Countable things of word problems."""

"""Small word lists that questions of several domains and skills share (few words, so that each is one token)."""

from __future__ import annotations

WORDS = (
    "red",
    "blue",
    "green",
    "black",
    "white",
    "sun",
    "moon",
    "tree",
    "star",
    "rock",
    "lake",
    "hill",
    "ship",
    "door",
    "lamp",
    "book",
)
"""Plain words for lists."""
NAMES = ("Tom", "Ann", "Bob", "Eva", "Sam", "Lea", "Max", "Ida", "Ben", "Mia", "Leo", "Zoe", "Kim", "Jon", "Amy", "Dan")
"""First names."""
CITIES = ("Rome", "Oslo", "Paris", "Lima", "Cairo", "Delhi", "Tokyo", "Quito", "Bern", "Seoul", "Kyiv", "Riga")
"""Cities."""
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""Days of the week."""
THINGS = ("pens", "cups", "eggs", "nuts", "keys", "coins")
"""Countable things of word problems."""

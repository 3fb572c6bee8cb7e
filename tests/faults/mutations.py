"""Documents with one or several things wrong: for every reader of files."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(
        ["", "../../x", "\x1b[2J", "<script>", "!!python/name:os.system", "nan", "1e999", "\ud800", "a" * 500]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def changed(draw: st.DrawFn, original: Any) -> Any:
    """The document with one to three of its parts taken out, replaced or added."""
    document = copy.deepcopy(original)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(document))
        if not places:
            return draw(VALUES)
        holder, key = draw(st.sampled_from(places))
        change = draw(st.sampled_from(["replace", "remove", "add", "rename"]))
        if change == "replace":
            holder[key] = draw(VALUES)
        elif change == "remove":
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(key, draw(VALUES))
        else:
            holder[draw(st.text(max_size=8))] = holder.pop(key) if change == "rename" else draw(VALUES)
    return document


@st.composite
def damaged(draw: st.DrawFn, text: str) -> bytes:
    """The text's bytes, cut, with bytes changed, or with something put in."""
    data = text.encode("utf-8", "surrogatepass")
    at = draw(st.integers(0, len(data)))
    change = draw(st.sampled_from(["cut", "change", "insert", "repeat"]))
    if change == "cut":
        return data[:at]
    if change == "change":
        return data[:at] + draw(st.binary(min_size=1, max_size=4)) + data[at + 1 :]
    if change == "repeat":
        return data[:at] + data
    pieces = [b"\0", b"\xff\xfe", b"!!python/object/apply:os.system [ls]", b"[" * 300, b"&a [*a]", b"{" * 300, b"\t"]
    return data[:at] + draw(st.sampled_from(pieces)) + data[at:]


def files(original: Any, write: Callable[[Any], str]) -> st.SearchStrategy[bytes]:
    """A file of the document with something wrong in its content or its bytes."""
    as_text = changed(original).map(lambda document: _text(document, write).encode("utf-8", "surrogatepass"))
    return st.one_of(as_text, damaged(write(original)))


def _text(document: Any, write: Callable[[Any], str]) -> str:
    try:
        return write(document)
    except (ValueError, TypeError, UnicodeError):  # what the format cannot say at all
        return json.dumps(document, default=str)


def _places(document: Any) -> Any:
    inside = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in list(inside):
        yield document, key
        yield from _places(value)

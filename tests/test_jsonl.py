from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from cl_bench.harness.errors import EXIT_USAGE, DataError
from cl_bench.harness.jsonl import read_jsonl

FIELDS = {"question": "str", "label": "int"}
GOOD = '{"id": "a", "question": "q", "label": 1}'


def write(folder: Path, *lines: str) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_good_rows_come_back_as_they_are(tmp_path: Path) -> None:
    # U+2028 ends a line for str.splitlines, not for JSONL.
    odd = '{"id": "b", "question": "q\u2028r", "label": 2, "more": null}'
    rows = read_jsonl(write(tmp_path, GOOD, "", odd), FIELDS)
    assert [row["id"] for row in rows] == ["a", "b"]
    assert rows[1] == {"id": "b", "question": "q\u2028r", "label": 2, "more": None}


def test_an_id_may_be_a_number_and_is_one_with_its_digits(tmp_path: Path) -> None:
    one, two = ('{"id": 7, "question": "q", "label": 1}', '{"id": "7", "question": "q", "label": 1}')
    assert [row["id"] for row in read_jsonl(write(tmp_path, GOOD, one), FIELDS)] == ["a", 7]
    with pytest.raises(DataError, match="line 3, field `id`"):
        read_jsonl(write(tmp_path, GOOD, one, two), FIELDS)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('{"id": "b", "label": 1}', ["line 2", "`question`", "missing"]),
        ('{"id": "b", "question": 3, "label": 1}', ["line 2", "`question`", "not a str"]),
        ('{"id": "b", "question": "q", "label": "1"}', ["line 2", "`label`", "not a int"]),
        ('{"id": "b", "question": "q", "label": true}', ["line 2", "`label`", "not a int"]),
        ('{"id": 7.5, "question": "q", "label": 1}', ["line 2", "`id`", "not a str or int"]),
        ('{"id": "a", "question": "q", "label": 1}', ["line 2", "`id`", "line 1"]),
        ('{"id": "b", "question": "q"', ["line 2", "invalid JSON"]),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, ["line 2", "invalid JSON", "nested"]),
        ('{"id": "b", "question": "\\ud800", "label": 1}', ["line 2", "no Unicode"]),
        ('["a", "q", 1]', ["line 2", "JSON object"]),
        ('{"id": "b", "question": "q", "label": 1' + "0" * 10_000 + "}", ["line 2", "too many digits"]),
    ],
)
def test_a_broken_row_is_named_by_file_line_and_field(tmp_path: Path, line: str, named: list[str]) -> None:
    path = write(tmp_path, GOOD, line)
    with pytest.raises(DataError) as caught:
        read_jsonl(path, FIELDS)
    assert all(part in str(caught.value) for part in [str(path), *named])
    assert caught.value.exit_code == EXIT_USAGE


def test_unreadable_or_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_jsonl(tmp_path / "absent.jsonl", FIELDS)
    (tmp_path / "latin.jsonl").write_bytes(b'{"question": "\xe9"}\n')
    with pytest.raises(DataError, match="cannot be read"):
        read_jsonl(tmp_path / "latin.jsonl", FIELDS)
    with pytest.raises(DataError, match="no rows"):
        read_jsonl(write(tmp_path, ""), FIELDS)


@pytest.mark.parametrize("details", ['{"score": 1}', "{}", "null", '{"level": 3}'])
def test_a_field_inside_another_is_asked_for_by_its_path(tmp_path: Path, details: str) -> None:
    path = write(tmp_path, f'{{"details": {details}}}')
    with pytest.raises(DataError, match=r"line 1, field `details\.level`"):
        read_jsonl(path, {"details.level": "str"})
    assert read_jsonl(write(tmp_path, '{"details": {"level": "L3"}}'), {"details.level": "str"})


def test_a_byte_order_mark_is_no_part_of_the_first_row(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b"\xef\xbb\xbf" + GOOD.encode() + b"\r\n")
    assert read_jsonl(tmp_path / "rows.jsonl", FIELDS)[0]["id"] == "a"


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (gzip.compress(GOOD.encode(), mtime=0), "gunzip"),
        (GOOD.encode("utf-16"), "iconv"),
        (GOOD.encode("utf-16-le"), "iconv"),
        (b'{"question": "\xe9"}', "UTF-8"),
    ],
    ids=["gzip", "utf-16", "utf-16-le", "latin-1"],
)
def test_other_encodings_are_named_with_what_helps(tmp_path: Path, data: bytes, hint: str) -> None:
    (tmp_path / "rows.jsonl").write_bytes(data)
    with pytest.raises(DataError, match="not UTF-8 text") as caught:
        read_jsonl(tmp_path / "rows.jsonl", FIELDS)
    assert hint in caught.value.hint


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, what in (("pipe", "a pipe or a device"), (".", "a folder")):
        with pytest.raises(DataError, match=what):
            read_jsonl(tmp_path / name, FIELDS)


def test_any_text_may_be_read_but_no_id(tmp_path: Path) -> None:
    path = write(tmp_path, '{"id": "a", "question": "\\ud800", "label": 1}')
    assert read_jsonl(path, FIELDS, any_text=True)[0]["question"] == "\ud800"
    path = write(tmp_path, '{"id": "\\uD800", "question": "q", "label": 1}')
    with pytest.raises(DataError, match="line 1: text that is no Unicode"):
        read_jsonl(path, FIELDS, any_text=True)

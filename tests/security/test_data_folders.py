"""Hostile data folders: records, links, front matter. Nothing beside the folder is read, written or removed."""

from __future__ import annotations

import hashlib
import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.errors import DataError
from cl_bench.tasks.sources import patterns
from cl_bench.tasks.sources.front_matter import as_text, read_front_matter
from cl_bench.tasks.sources.inside import is_inside
from cl_bench.tasks.sources.locate import DatasetSpec, data_identity, load_rows
from cl_bench.tasks.sources.prepared import read_record
from tests.end_to_end.conftest import call
from tests.tasks.sources.fake_hub import FakeHub, lines
from tests.tasks.sources.preparing import PATH, ROWS, SPEC, at, have, states, two_data_sets
from tests.tasks.sources.rows import math_row, write_hub_folder, write_jsonl

OUTSIDE = ["../../thesis", "..", "owner/../../../thesis", "", "owner//name", "owner/", "a\\..\\b", "a\0b", "./a", "."]


def entry(**changes: Any) -> dict[str, Any]:
    recorded = {"size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    return {"path": PATH, "origin": "hub", "fetched": "2030-01-01", "files": {"owner/name/x.jsonl": recorded}} | changes


def write_record(root: Path, *entries: dict[str, Any]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    (root / "prepared.json").write_text(json.dumps({"format": 1, "data_sets": entries}))


@pytest.fixture()
def thesis(tmp_path: Path) -> Path:
    """A file of the user's, beside the data folder and not in it."""
    file = tmp_path / "home" / "thesis" / "chapter.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("years of work")
    return file


def test_names_that_stay_in_a_folder_are_told_from_others() -> None:
    assert all(map(is_inside, ("a", "owner/name", "a/..b/c.jsonl", ".hidden")))
    assert not any(map(is_inside, [*OUTSIDE, "/etc/passwd", "//host/share", None, 3]))


@pytest.mark.parametrize("absolute", [False, True])
def test_a_record_removes_no_folder_elsewhere(absolute: bool, tmp_path: Path, thesis: Path) -> None:
    root = tmp_path / "data"
    path = str(thesis.parent) if absolute else "../../home/thesis"
    (root / ".partial").mkdir(parents=True)
    write_record(root, entry(path=path, files={}))
    done = call("data", "prepare", "chemistry", "--offline", "--to", str(root), cwd=tmp_path)
    assert thesis.read_text() == "years of work"
    assert done.returncode == 2 and "prepared.json cannot be read" in done.stderr and "path" in done.stderr


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_record_with_a_name_that_is_none_of_the_folder_is_damaged(name: str, tmp_path: Path) -> None:
    write_record(tmp_path, entry(path=name))
    with pytest.raises(DataError, match=r"prepared\.json cannot be read"):
        read_record(tmp_path)
    write_record(tmp_path, entry(files={name: entry()["files"]["owner/name/x.jsonl"]}))
    with pytest.raises(DataError, match=r"prepared\.json cannot be read"):
        read_record(tmp_path)


def test_a_record_removes_no_file_elsewhere(tmp_path: Path, thesis: Path) -> None:
    root = tmp_path / "data"
    name = "../home/thesis/chapter.jsonl"
    write_record(root, entry(config="main", files={name: entry()["files"]["owner/name/x.jsonl"]}))
    with pytest.raises(DataError):
        have(root, two_data_sets(), SPEC)
    assert thesis.exists()


@pytest.mark.parametrize("place", [".partial", ".partial/owner", ".partial/owner/name"])
def test_a_link_among_downloads_is_removed_and_not_followed(place: str, tmp_path: Path, thesis: Path) -> None:
    root = tmp_path / "data"
    have(root, two_data_sets(), SPEC)
    ends = {".partial": "owner/name/x", ".partial/owner": "name/x", ".partial/owner/name": "x"}
    (thesis.parent / ends[place]).mkdir(parents=True)
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).symlink_to(thesis.parent)
    assert states(have(root, None, SPEC, offline=True)) == ["present"]
    assert thesis.exists() and (thesis.parent / ends[place]).exists()
    assert not (root / ".partial").exists() and not (root / ".partial").is_symlink()


def test_a_download_goes_through_no_link(tmp_path: Path, thesis: Path) -> None:
    root, mine = tmp_path / "data", thesis.parent / "README.md"
    mine.write_text("mine")
    (root / ".partial").mkdir(parents=True)
    (root / ".partial" / "owner").symlink_to(thesis.parent)
    (thesis.parent / "name").mkdir()
    (thesis.parent / "name" / "draft").touch()
    before = sorted(thesis.parent.rglob("*"))
    assert states(have(root, two_data_sets(), SPEC)) == ["downloaded"]
    assert sorted(thesis.parent.rglob("*")) == before and mine.read_text() == "mine"


def test_a_link_out_of_the_folder_makes_nothing_behind_it_ours(tmp_path: Path, thesis: Path) -> None:
    root = tmp_path / "data"
    victims = [thesis.parent / "name" / name for name in ("main/train.jsonl", "README.md", "old.jsonl")]
    for victim in victims:
        victim.parent.mkdir(parents=True, exist_ok=True)
        victim.write_text("mine")
    recorded = entry()["files"]["owner/name/x.jsonl"]
    files = {f"owner/name/{victim.relative_to(thesis.parent / 'name')}": recorded for victim in victims}
    write_record(root, entry(config="main", files=files))
    (root / "owner").symlink_to(thesis.parent)
    (outcome,) = have(root, two_data_sets(), SPEC)
    assert outcome.state == "failed" and "link" in outcome.detail
    assert [victim.read_text() for victim in victims] == ["mine"] * 3


@pytest.mark.parametrize("name", ["../../test.jsonl", "ABSOLUTE", "a\\test.jsonl"])
def test_names_of_the_hub_that_lead_elsewhere_are_ignored(name: str, tmp_path: Path, thesis: Path) -> None:
    hub = FakeHub()
    name = str(thesis) if name == "ABSOLUTE" else name
    hub.publish(PATH, {"test.jsonl": lines(ROWS["test"]), name: lines(ROWS["test"])})
    (outcome,) = have(tmp_path / "root", hub, DatasetSpec(PATH, {"test": "x.jsonl"}))
    assert outcome.rows == {"test": 1} and thesis.read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "root"]


HOSTILE = {
    "a date": "a: 2001-99-99",
    "digits": f"a: {'9' * 5_000}",
    "depth": "[" * 5_000,
    "aliases": "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    ),
    "itself": "a: &a [*a]",
    "a list as a name": "configs: [{config_name: [x], data_files: x.jsonl}]",
    "no information": "dataset_info: [5]",
    "named by a list": "dataset_info: [{config_name: {a: b}}]",
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_front_matter_is_a_data_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(f"---\n{text}\n---\n")
    with pytest.raises(DataError, match="front matter of"):
        read_front_matter(tmp_path / "README.md")


def test_a_second_place_for_declarations_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".huggingface.yaml").write_text("configs: [{config_name: main, data_files: ../outside.csv}]")
    with pytest.raises(DataError, match=r"\.huggingface\.yaml"):
        read_front_matter(tmp_path / "README.md")


def test_a_name_that_looks_like_a_number_survives_writing_and_reading(tmp_path: Path) -> None:
    front = {"configs": [{"config_name": "12e45678", "data_files": "x.jsonl"}]}
    (tmp_path / "README.md").write_text(as_text(front, "body"))
    assert read_front_matter(tmp_path / "README.md") == front


@pytest.mark.parametrize("depth", [20, 200])
def test_folders_of_any_depth_are_matched_in_steps_that_are_few(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(name: str, piece: str) -> bool:
        calls.append(name)
        return fnmatchcase(name, piece)

    monkeypatch.setattr(patterns, "fnmatchcase", counted)
    stars = "/".join(["**", "a"] * 10)
    assert not patterns.matching(["/".join(["a"] * depth)], f"{stars}/b", "")
    assert 0 < len(calls) <= 21 * (depth + 1)
    assert patterns.matching(["/".join(["a"] * depth)], stars, "")


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("a", "**", True),
        ("a/b/c", "**", True),
        ("a/b/c", "**/c", True),
        ("c", "**/c", True),
        ("a/b/c", "a/**/c", True),
        ("a/c", "a/**/c", True),
        ("a/b/c", "a/*", False),
        ("a/b", "a/b/**", True),
        ("a/b/a/c", "**/a/**/c", True),
        ("b/c", "**/a/**/c", False),
        ("a", "a/b", False),
    ],
)
def test_two_stars_are_any_number_of_folders(name: str, pattern: str, fits: bool) -> None:
    assert bool(patterns.matching([name], pattern, "")) is fits


def data_folder(root: Path, declared: Any, name: str = "train.csv", **further: Any) -> Path:
    """A hub-shaped folder of one CSV file that declares something as its training data."""
    folder = root / PATH
    folder.mkdir(parents=True)
    (folder / name).write_text("question\nmine\n")
    config = {"config_name": "main", "data_files": [{"split": "train", "path": declared}], **further}
    (folder / "README.md").write_text(as_text({"configs": [config]}, "body"))
    return folder


CSV = DatasetSpec(PATH, {"train": "x.jsonl"}, "main")


@pytest.mark.parametrize(
    "declared",
    [
        "../../../outside.csv",
        ["train.csv", "../../../outside.csv"],
        "a/../../../../outside.csv",
        "ABSOLUTE",
        ["train.csv", "ABSOLUTE"],
        "https://localhost:1/outside.csv",
        "zip://x.csv::outside.zip",
        "link/*.csv",
        ["train.csv", "link/*.csv"],
        "absent-*.csv",
    ],
)
def test_declared_files_outside_the_folder_are_not_read(declared: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside.csv"
    outside.write_text("question\nsecret\n")
    absolute = json.loads(json.dumps(declared).replace("ABSOLUTE", str(outside)))
    folder = data_folder(tmp_path / "root", absolute)
    (folder / "link").symlink_to(tmp_path)
    for use in (
        lambda: load_rows(CSV, "train", at(tmp_path / "root")),
        lambda: data_identity(CSV, at(tmp_path / "root")),
    ):
        with pytest.raises(DataError) as caught:
            use()
        assert "README.md" in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize("data_dir", ["..", "../../..", "/", "a/../../.."])
def test_a_declared_folder_outside_is_not_read(data_dir: str, tmp_path: Path) -> None:
    folder = data_folder(tmp_path / "root", "train.csv")
    config = {"config_name": "main", "data_dir": data_dir}
    (folder / "README.md").write_text(as_text({"configs": [config]}, "body"))
    with pytest.raises(DataError, match=r"leads out of the folder"):
        load_rows(CSV, "train", at(tmp_path / "root"))


def test_what_another_configuration_declares_outside_is_refused_too(tmp_path: Path) -> None:
    folder = data_folder(tmp_path / "root", "train.csv")
    first = {"config_name": "first", "data_files": {"train": ["../../../outside.csv"]}}
    front = read_front_matter(folder / "README.md")
    (folder / "README.md").write_text(as_text({"configs": [first, *front["configs"]]}, "body"))
    with pytest.raises(DataError, match=r"leads out of the folder"):
        load_rows(CSV, "train", at(tmp_path / "root"))


@pytest.mark.parametrize("declared", ["train.csv", "./train.csv", "*.csv", "**/*.csv", "tra*", ["train.csv"]])
def test_declared_files_in_the_folder_are_read(declared: Any, tmp_path: Path) -> None:
    data_folder(tmp_path / "root", declared)
    assert [row["question"] for row in load_rows(CSV, "train", at(tmp_path / "root"))] == ["mine"]
    assert "sha256" in data_identity(CSV, at(tmp_path / "root"))


def test_declared_files_of_other_endings_are_read_and_hashed(tmp_path: Path) -> None:
    folder = data_folder(tmp_path / "root", "train.txt", name="train.txt")
    (folder / "other.csv").write_text("question\nother\n")
    before = data_identity(CSV, at(tmp_path / "root"))
    assert [row["text"] for row in load_rows(CSV, "train", at(tmp_path / "root"))] == ["question", "mine"]
    (folder / "train.txt").write_text("changed\n")
    assert data_identity(CSV, at(tmp_path / "root")) != before


def test_files_of_a_data_set_stay_below_the_root(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "outside.jsonl", [math_row(1)])
    write_hub_folder(tmp_path, PATH, {"main": ROWS})
    for path, name in (("../owner/name", "x.jsonl"), (str(tmp_path / PATH), "x.jsonl"), (PATH, "../outside.jsonl")):
        with pytest.raises(DataError, match="does not lie below"):
            DatasetSpec(path, {"test": name}, "main")

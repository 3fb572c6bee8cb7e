from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.errors import DataError
from cl_bench.tasks.sources.front_matter import as_text, config_files, merged, read_front_matter, reduced, split_files

NAMES = [
    "README.md", ".gitattributes", ".cache/huggingface/train.jsonl", "dataset_infos.json", "main/train-00000.parquet",
    "main/train-00001.parquet", "main/test.parquet", "other/deep/er/test.parquet", "notes/train.txt",
]  # fmt: skip


def front(*configs: dict[str, Any]) -> dict[str, Any]:
    return {"license": "mit", "configs": list(configs)}


def config(name: str, files: Any, **further: Any) -> dict[str, Any]:
    return {"config_name": name, "data_files": files, **further}


MAIN = config("main", [{"split": "train", "path": "main/train-*"}, {"split": "test", "path": ["main/test*"]}])
OTHER = config("other", [{"split": "test", "path": "other/**/*.parquet"}])


def test_the_front_matter_decides_which_file_is_which_split() -> None:
    both = front(MAIN, OTHER)
    assert split_files(NAMES, both, "main", "train", "x") == NAMES[4:6]
    assert split_files(NAMES, both, "main", "test", "x") == [NAMES[6]]
    assert split_files(NAMES, both, "other", "test", "x") == [NAMES[7]]
    assert config_files(NAMES, both, "main", "x") == sorted(NAMES[4:7])
    swapped = front(config("main", [{"split": "test", "path": "main/train-*"}]))
    assert split_files(NAMES, swapped, "main", "test", "x") == NAMES[4:6]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("data.jsonl", ["data.jsonl"]),
        (["a.jsonl", "b.jsonl"], ["a.jsonl", "b.jsonl"]),
        ({"train": "./a.jsonl"}, ["a.jsonl"]),
        ([{"split": "train", "path": ["a.jsonl", "b.jsonl"]}], ["a.jsonl", "b.jsonl"]),
    ],
)
def test_every_form_of_data_files_is_read(files: Any, expected: list[str]) -> None:
    names = ["a.jsonl", "b.jsonl", "data.jsonl"]
    assert split_files(names, front(config("default", files)), None, "train", "x") == expected


def test_a_star_stays_within_one_folder() -> None:
    names = ["data/a.jsonl", "data/old/a.jsonl"]
    declared = front(config("default", [{"split": "train", "path": "data/*.jsonl"}]))
    assert split_files(names, declared, None, "train", "x") == ["data/a.jsonl"]


def test_a_folder_of_data_is_looked_through_by_name() -> None:
    declared = front({"config_name": "main", "data_dir": "main"}, {"config_name": "other", "data_dir": "other"})
    assert split_files(NAMES, declared, "main", "train", "x") == NAMES[4:6]
    assert config_files(NAMES, declared, "other", "x") == [NAMES[7]]


def test_without_a_declaration_names_decide_by_whole_words() -> None:
    names = ["latest.jsonl", "q_test.jsonl", "train/0.parquet", "val.jsonl", "training.jsonl"]
    assert split_files(names, {}, None, "test", "x") == ["q_test.jsonl"]
    assert split_files(names, {}, None, "train", "x") == ["train/0.parquet", "training.jsonl"]
    assert split_files(names, {}, None, "validation", "x") == ["val.jsonl"]
    assert config_files(names, {}, None, "x") == sorted(names)


def test_what_is_not_declared_is_named_with_what_is() -> None:
    with pytest.raises(DataError, match=r"x has no configuration 'algebra'\n.*it has main, other"):
        split_files(NAMES, front(MAIN, OTHER), "algebra", "test", "x")
    with pytest.raises(DataError, match=r"x has no split 'train'\n.*it has test"):
        split_files(NAMES, front(MAIN, OTHER), "other", "train", "x")
    with pytest.raises(DataError, match="several configurations and no default"):
        split_files(NAMES, front(MAIN, OTHER), None, "test", "x")
    assert split_files(NAMES, front(OTHER, MAIN | {"default": True}), None, "test", "x") == [NAMES[6]]
    with pytest.raises(DataError, match="no data files"):
        config_files([], front(MAIN), "main", "x")


@pytest.mark.parametrize(
    "text", ["---\nconfigs: [\n---\n", "---\n- a list\n---\n", "---\nconfigs: {main: 1}\n---\n", b"---\n\xff\n---\n"]
)
def test_a_broken_front_matter_is_named(tmp_path: Path, text: str | bytes) -> None:
    readme = tmp_path / "README.md"
    readme.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError, match="front matter"):
        read_front_matter(readme)


def test_files_declared_as_something_else_are_named() -> None:
    with pytest.raises(DataError, match="`data_files` of x cannot be read"):
        split_files(NAMES, front(config("main", [{"split": "train"}])), "main", "train", "x")


@pytest.mark.parametrize("text", ["# A title\n\n---\nconfigs: 1\n---\n", "", "no front matter\n---\n"])
def test_a_rule_further_down_is_no_front_matter(tmp_path: Path, text: str) -> None:
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    assert read_front_matter(tmp_path / "README.md") == {}
    assert read_front_matter(tmp_path / "absent.md") == {}


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes(b"\xef\xbb\xbf---\r\nlicense: mit\r\n---\r\ntext")
    assert read_front_matter(tmp_path / "README.md") == {"license": "mit"}


def test_a_reduced_front_matter_declares_what_is_there_and_comes_back(tmp_path: Path) -> None:
    information = [{"config_name": "main", "features": []}, {"config_name": "other", "features": []}]
    whole = {**front(MAIN, OTHER), "dataset_info": information}
    part = reduced(whole, ["other"], "x")
    assert part == {"license": "mit", "configs": [OTHER], "dataset_info": information[1:]}
    (tmp_path / "README.md").write_text(as_text(part, "body"), encoding="utf-8")
    assert read_front_matter(tmp_path / "README.md") == part
    assert merged(part, reduced(whole, ["main"], "x"))["configs"] == [OTHER, MAIN]


SUBJECTS = [f"data/{subject}/x_{subject.lower()}_test.jsonl" for subject in ("Biology", "Chemistry", "Physics")]


@pytest.mark.parametrize("config", ["Chemistry", "chemistry"])
def test_without_a_declaration_a_configuration_is_the_folder_of_its_name(config: str) -> None:
    assert split_files(SUBJECTS, {}, config, "test", "x") == [SUBJECTS[1]]
    assert config_files(SUBJECTS, {}, config, "x") == [SUBJECTS[1]]
    assert config_files(SUBJECTS, {}, None, "x") == SUBJECTS
    named_alike = ["algebra/test.jsonl", "intermediate_algebra/test.jsonl"]
    assert split_files(named_alike, {}, "algebra", "test", "x") == named_alike[:1]


@pytest.mark.parametrize(
    "names",
    [
        SUBJECTS,
        SUBJECTS[1:2],
        ["biology_test.jsonl", "chemistry_test.jsonl"],
        ["aime24_test.jsonl", "aime25_test.jsonl"],
        ["test.jsonl", "test.parquet"],
    ],
)
def test_files_of_other_configurations_are_refused_where_nothing_is_declared(names: list[str]) -> None:
    attempts = (partial(split_files, names, {}, "Material", "test"), partial(config_files, names, {}, "Material"))
    for attempt in attempts:
        with pytest.raises(
            DataError, match="x does not say which of its files are the configuration 'Material'"
        ) as caught:
            attempt("x")
        assert "README.md" in caught.value.why and "README.md" in caught.value.hint


@pytest.mark.parametrize(
    "names",
    [
        ["test.jsonl", "train.jsonl"],
        ["x_test.jsonl", "x_train.jsonl"],
        ["data/test-00000-of-00002.parquet", "data/test-00001-of-00002.parquet", "data/train-0.parquet"],
        ["test/0.parquet", "test/1.parquet", "train/0.parquet"],
    ],
)
def test_a_configuration_that_only_the_hub_needs_is_no_obstacle(names: list[str]) -> None:
    expected = [name for name in names if "test" in name]
    assert split_files(names, {}, "main", "test", "x") == expected
    assert config_files(names, {}, "main", "x") == names
    assert split_files([], {}, "main", "test", "x") == []

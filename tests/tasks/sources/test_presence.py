from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import AbsentDataError, load_rows, locate
from cl_bench.tasks.sources.presence import absence
from tests.tasks.sources.rows import math_row, write_hub_folder
from tests.tasks.sources.test_locate import SPEC, flat


def test_a_folder_without_data_files_hides_no_flat_files(tmp_path: Path) -> None:
    flat(tmp_path)
    (tmp_path / "owner" / "name").mkdir(parents=True)
    (tmp_path / "owner" / "name" / "README.md").write_text("# To come", encoding="utf-8")
    assert load_rows(SPEC, "test", DataOptions("hub", tmp_path)) == [math_row(3)]
    (tmp_path / "a_test.jsonl").unlink()
    with pytest.raises(AbsentDataError, match=r"neither a folder owner/name with data files nor a_test\.jsonl"):
        locate(SPEC, DataOptions("hub", tmp_path))


def test_a_data_set_is_there_when_all_its_splits_are(tmp_path: Path) -> None:
    options = DataOptions("hub", tmp_path)
    error = absence(SPEC, options)
    assert error is not None and "not in" in error.what
    folder = write_hub_folder(tmp_path, "owner/name", {"main": {"test": [math_row(3)]}})
    error = absence(SPEC, options)
    assert error is not None and "no split 'train'" in error.what and "data prepare owner/name" in error.hint
    assert absence(replace(SPEC, files={"test": "x.jsonl"}), options) is None
    published_as_files = absence(replace(SPEC, on_hub=False), options)
    assert published_as_files is not None and published_as_files.hint == "add the files of the split train"
    (folder / "README.md").unlink()
    error = absence(SPEC, options)
    assert error is not None and "no files named after train" in error.what

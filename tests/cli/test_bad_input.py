"""Bad input ends with exit code 2, says what is near, and writes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

RUN = ["run", "--sequence", "science", "--profile", "lab", "--suite", "none", "--limit", "2"]


@pytest.mark.parametrize(
    ("arguments", "message", "near"),
    [
        (["rnu"], "unknown command: 'rnu'", "run"),
        (["models", "lst"], "unknown command: 'lst'", "list"),
        (["run", "--methdo", "sft"], "No such option", "--method"),
        ([*RUN, "--method", "stf"], "unknown method: 'stf'", "sft"),
        ([*RUN, "--method", "bsae"], "unknown method: 'bsae'", "base"),
        (["run", "--method", "sft", "--sequence", "sience"], "unknown sequence: 'sience'", "science"),
        ([*RUN, "--method", "sft", "--order", "revresed"], "unknown order", "reversed"),
        ([*RUN, "--method", "sft", "--profile", "labb"], "unknown profile", "lab"),
        ([*RUN, "--method", "sft", "--recipe", "table"], "unknown recipe", "table5"),
        ([*RUN, "--method", "sft", "--model", "lab-mm"], "unknown model", "lab-m"),
        ([*RUN, "--method", "sft", "--suite", "retention-locl"], "unknown suite", "retention-local"),
        ([*RUN, "--method", "sft", "--set", "method.learning_rat=1"], "learning_rat is not known", "learning_rate"),
        ([*RUN, "--method", "sft", "--set", "metod.epochs=1"], "unknown key 'metod'", "method"),
        ([*RUN, "--method", "sft", "--set", "sequence.chemisty.epochs=1"], "unknown key 'chemisty'", "chemistry"),
        ([*RUN, "--method", "sft", "--set", "evaluation.row=1"], "row is not known", "rows"),
        ([*RUN, "--method", "sft", "--set", "precision.trainig=fp32"], "trainig is not known", "training"),
        ([*RUN, "--method", "sft", "--set", "data.distanc=LO"], "distanc is not known", "distance"),
        (["show", "methd", "sft"], "unknown kind", "method"),
        (["show", "method", "stf"], "unknown method", "sft"),
        (["list", "metods"], "metods", "methods"),
        (["models", "fetch", "smollm"], "model to fetch", "smollm2-135m"),
        (["models", "build", "lab-q", "--out", "x"], "unknown lab model", "lab-"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_unknown_names(cli: Cli, tmp_path: Path, arguments: list[str], message: str, near: str) -> None:
    done = cli(*arguments)
    assert done.code == 2
    assert message in done.err
    assert near in done.err.partition(message)[2]
    assert done.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "sft", "--set", "method.learning_rate=fast"], "learning_rate"),
        (["--method", "sft", "--set", "method.learning_rate=-1"], "greater than 0"),
        (["--method", "sft", "--set", "learning_rate=1"], "expected group.name=value"),
        (["--method", "sft", "--set", "method.epochs"], "expected group.name=value"),
        (["--method", "sft", "--set", "evaluation.rows=0"], "rows"),
        (["--method", "sft", "--set", "evaluation.batch_size=0"], "batch_size"),
        (["--method", "sft", "--set", "modifier.ewc.strength=1"], "unknown key 'ewc'"),
        (["--method", "base", "--set", "method.epochs=1"], "no settings"),
        (["--method", "sft", "--joint-with", "sdft"], "--joint-with goes with"),
        (["--method", "sft", "--seeds", "1,1"], "given twice"),
        (["--method", "sft", "--seeds", "3-1"], "cannot read"),
        (["--method", "sft", "--checkpoint-every", "soon"], "cannot be read"),
        (["--method", "sft", "--keep-checkpoints", "some"], "all or last"),
        (["--method", "sft", "--data-root", "absent"], "not a folder"),
        (["--method", "sft", "--gold-ids", "absent"], "not a file"),
        (["--method", "sft", "--include-path", "absent"], "not a folder"),
        (["--method", "sft", "--write-recipe", "r.yaml"], "goes with --tune"),
        (["--method", "synthself", "--aligner", "none"], "needs an aligner"),
        (["--method", "sft", "absent.yaml"], "cannot read"),
        ([], "no method given"),
    ],
)
def test_values_that_do_not_fit(cli: Cli, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = cli(*RUN, *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


def test_no_sequence_lists_the_sequences(cli: Cli) -> None:
    done = cli("run", "--method", "sft")
    assert done.code == 2
    assert "science" in done.err


@pytest.mark.parametrize(
    "arguments", [["rnu"], ["run", "--bad"], ["run", "--method", "stf"], ["show", "run", "absent"]]
)
def test_errors_as_json_are_one_line(cli: Cli, arguments: list[str]) -> None:
    done = cli(*arguments, "--json")
    (line,) = done.out.splitlines()
    content = json.loads(line)
    assert content["exit_code"] == done.code != 0
    assert content["error"]["what"]


def test_aligner_with_another_tokenizer_is_refused_before_loading(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(tiny, other)
    tokenizer = json.loads((other / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    one, two = list(vocabulary)[10:12]
    vocabulary[one], vocabulary[two] = vocabulary[two], vocabulary[one]
    (other / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    # Weights that cannot be read: they must not be needed for the answer.
    (other / "model.safetensors").write_bytes(b"broken")
    done = cli(*RUN, "--method", "synthself", "--model", str(tiny), "--aligner", str(other))
    assert done.code == 2
    assert "different tokenizers" in done.err
    assert not (tmp_path / "runs").exists()


def test_broken_data_name_file_line_and_field(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    for name in ("chemistry", "biology", "material", "physics"):
        (root / f"science_{name}.jsonl").write_text('{"question": "only this"}\n', encoding="utf-8")
    arguments = ["run", "--method", "sft", "--sequence", "science", "--model", str(tiny), "--data-root", str(root)]
    done = cli(*arguments, "--suite", "none", "--limit", "2")
    assert done.code == 2
    assert "science_chemistry.jsonl" in done.err
    assert "line 1" in done.err
    assert not (tmp_path / "runs").exists()


def test_a_folder_that_is_no_run_is_refused(cli: Cli, tmp_path: Path) -> None:
    for command in (["resume", "."], ["show", "run", "."], ["validate", "run", "."]):
        done = cli(*command)
        assert done.code == 1
        assert "not a run directory" in done.err
    assert list(tmp_path.iterdir()) == []

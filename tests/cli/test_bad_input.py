"""Bad input ends with exit code 2, says what is near, and writes nothing."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cl_bench.harness.cli_errors import exit_code
from tests.cli.conftest import Cli, call

Damage = Callable[[Path, str], None]
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
        (["--method", "sft", "--set", "method.learning_rate=inf"], "learning_rate: Input should be a finite number"),
        (["--method", "sft", "--set", "method.learning_rate=.inf"], "learning_rate: Input should be a finite number"),
        (["--method", "sft", "--set", "method.weight_decay=nan"], "weight_decay"),
        (["--method", "sft", "--set", "method.batch_size=true"], "batch_size: expected another value than true"),
        (["--method", "sft", "--set", "evaluation.rows=true"], "rows: expected another value than true"),
        (["--method", "sft", "--set", "sequence.rows=true"], "rows: expected another value than true"),
        (
            ["--method", "sft", "--with", "ewc", "--set", "modifier.ewc.strength=inf"],
            "strength: Input should be a finite",
        ),
        (["--method", "sft", "--tier", "fats"], "did you mean fast"),
        (["--method", "sft", "--set", "evaluation.rows=0"], "rows"),
        (["--method", "sft", "--set", "evaluation.batch_size=0"], "batch_size"),
        (["--method", "sft", "--set", "modifier.ewc.strength=1"], "unknown key 'ewc'"),
        (["--method", "base", "--set", "method.epochs=1"], "no settings"),
        (["--method", "sft", "--joint-with", "sdft"], "--joint-with goes with"),
        (["--method", "sft", "--seeds", "1,1"], "given twice"),
        (["--method", "sft", "--seeds", "3-1"], "cannot read"),
        (["--method", "sft", "--checkpoint-every", "soon"], "cannot be read"),
        (["--method", "sft", "--keep-checkpoints", "some"], "all, last or none"),
        (["--method", "sft", "--data-root", "absent"], "not a folder"),
        (["--method", "sft", "--gold-ids", "absent"], "not a file"),
        (["--method", "sft", "--include-path", "absent"], "not a folder"),
        (["--method", "sft", "--write-recipe", "r.yaml"], "goes with --tune"),
        (["--method", "synthself", "--aligner", "none"], "needs an aligner"),
        (["--method", "sft", "absent.yaml"], "cannot read"),
        (["--method", "sft", "--model", ""], "--model is empty"),
        (["--method", "sft", "--device", "cdua"], "--device cdua cannot be used"),
        (["--method", "sft", "--order", "random:²"], "whole number"),
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
    for command in (["resume", "."], ["report", "."], ["validate", "run", "."]):
        done = cli(*command)
        assert done.code == 2
        assert "not a run directory" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["{[1, 2]: 3}\n", "? {a: 1}\n: 2\n"])
def test_a_key_of_several_values_is_refused(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "request.yaml").write_text(text, encoding="utf-8")
    done = cli("run", "request.yaml")
    assert done.code == 2
    assert "no single value" in done.err


def without(folder: Path, name: str) -> None:
    (folder / name).unlink()


def cut_off(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])


def garbled(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"\xff" * 64)


@pytest.mark.parametrize(
    ("damage", "file", "message"),
    [
        (without, "tokenizer.json", "no tokenizer"),
        (without, "chat_template.jinja", "no chat template"),
        (without, "model.safetensors", "no safetensors"),
        (without, "config.json", "no config.json"),
        (cut_off, "model.safetensors", "is cut off"),
        (garbled, "model.safetensors", "not a safetensors file"),
        (cut_off, "config.json", "config.json cannot be read"),
        (garbled, "tokenizer.json", "tokenizer.json cannot be read"),
    ],
)
@pytest.mark.parametrize("role", ["--model", "--aligner"])
def test_damaged_model_folders_are_refused_before_anything_is_written(
    cli: Cli, tiny: Path, tmp_path: Path, role: str, damage: Damage, file: str, message: str
) -> None:
    damaged = shutil.copytree(tiny, tmp_path / "damaged")
    damage(damaged, file)
    models = {"--model": str(tiny), "--aligner": str(tiny), role: str(damaged)}
    done = cli(*RUN, "--method", "synthself", *(part for pair in models.items() for part in pair))
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert not (tmp_path / "runs").exists()


def test_weights_of_another_architecture_are_a_model_error(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    odd = shutil.copytree(tiny, tmp_path / "odd")
    config = json.loads((odd / "config.json").read_text(encoding="utf-8"))
    (odd / "config.json").write_text(json.dumps({**config, "model_type": "no-such-type"}), encoding="utf-8")
    done = cli(*RUN, "--method", "sft", "--model", str(odd))
    assert done.code == 2
    assert "cannot be loaded" in done.err


def test_a_folder_that_cannot_be_written_is_no_fault_of_the_program(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = cli(*RUN, "--method", "sft", "--model", str(tiny), "--output", str(tmp_path / "file" / "below"))
    assert done.code == 1
    assert "cannot read or write" in done.err
    assert "Traceback" not in done.err


def test_a_run_directory_that_was_moved_is_not_resumed_elsewhere(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    done = cli(*RUN, "--method", "base", "--model", str(tiny))
    assert done.code == 0, done.err
    (spec,) = (tmp_path / "runs").glob("*/*/*/spec.yaml")
    moved = tmp_path / spec.parent.name
    spec.parent.rename(moved)
    before = sorted(tmp_path.rglob("*"))
    done = cli("resume", str(moved))
    assert done.code == 1
    assert "not where its run belongs" in done.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture(scope="module")
def base_run(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the untouched model, for copies to be damaged."""
    output = tmp_path_factory.mktemp("base")
    done = call(*RUN, "--method", "base", "--model", str(tiny), "--output", str(output))
    assert done.code == 0, done.err
    return output


@pytest.mark.parametrize("file", ["status.json", "matrix.json", "metrics.json", "stages/00-base/done.json"])
@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff\xfe"])
def test_damaged_documents_are_named_and_written_again_once_removed(
    cli: Cli, base_run: Path, tmp_path: Path, file: str, content: bytes
) -> None:
    shutil.copytree(base_run, tmp_path / "runs")
    (spec,) = (tmp_path / "runs").glob("*/*/*/spec.yaml")
    (spec.parent / file).write_bytes(content)
    for command in (["show", "run"], ["validate", "run"]):
        done = cli(*command, str(spec.parent))
        assert done.code == 1
        assert file in done.err
        assert "Traceback" not in done.err
    (spec.parent / file).unlink()
    assert cli("resume", str(spec.parent)).code == 0
    assert cli("validate", "run", str(spec.parent)).code == 0


def test_a_stage_is_not_trained_anew_below_finished_ones(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    command = [*RUN, "--method", "sft", "--model", str(tiny), "--set", "evaluation.rows=1"]
    assert cli(*command).code == 0
    (spec,) = (tmp_path / "runs").glob("*/*/*/spec.yaml")
    (spec.parent / "stages" / "02-biology" / "done.json").unlink()
    done = cli("resume", str(spec.parent))
    assert done.code == 1
    assert "stage materials is finished, but biology before it is not" in done.err
    for stage in ("03-materials", "04-physics"):
        shutil.rmtree(spec.parent / "stages" / stage)
    assert cli("resume", str(spec.parent)).code == 0


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "run/file"),
        ValueError("Error while serializing: I/O error: No space left on device (os error 28)"),
        RuntimeError("[enforce fail] . PytorchStreamWriter failed writing file data/0: file write failed"),
    ],
)
def test_a_full_disk_is_no_fault_of_the_program(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise error

    assert exit_code(fail, json=False) == 1
    said = capsys.readouterr().err
    assert "free some space" in said
    assert "Traceback" not in said


def test_any_other_error_keeps_its_trace(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise OSError("no error number")

    assert exit_code(fail, json=False) == 1
    assert "Traceback" in capsys.readouterr().err

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tasks.execution.sandbox import BRIEF, Run

WRITES = {
    "new file": "open('new', 'w')",
    "append": "open('kept', 'a')",
    "overwrite": "open('kept', 'r+')",
    "remove": "os.remove('kept')",
    "rename": "os.rename('kept', 'moved')",
    "folder": "os.mkdir('folder')",
    "link": "os.symlink('x', 'link')",
    "truncate": "os.truncate('kept', 0)",
    "tree": "shutil.rmtree('tree')",
    "database": "sqlite3.connect('base').execute('create table a (b)')",
}


def _attempt(call: str, folder: Path) -> str:
    """A program that passes where the call is refused. ``chdir`` is allowed: the fences are about writing."""
    refused = "except (OSError, sqlite3.Error): pass\nelse: 1 / 0"
    return f"import os, shutil, sqlite3\nos.chdir({str(folder)!r})\ntry: {call}\n{refused}"


@pytest.fixture
def outside(place: Path) -> Path:
    """A folder that everybody may write to, with a file and a folder in it."""
    folder = place / "outside"
    (folder / "tree").mkdir(parents=True)
    (folder / "kept").write_text("kept")
    for path in (folder, *folder.iterdir()):
        path.chmod(0o777)
    return folder


def test_what_is_written_outside_is_refused(run: Run, outside: Path) -> None:
    attempts = {**WRITES, "setting": "open('/proc/sys/kernel/hostname', 'w')", "device": "open('/dev/kmsg', 'w')"}
    for name, call in attempts.items():
        outcome = run(_attempt(call, outside))
        assert outcome.passed, (name, outcome)
    assert {path.name for path in outside.iterdir()} == {"kept", "tree"}
    assert (outside / "kept").read_text() == "kept"


@pytest.mark.parametrize("name", WRITES)
def test_without_a_sandbox_the_same_is_written(name: str, outside: Path) -> None:
    """Or the test above would show nothing."""
    command = [sys.executable, "-c", _attempt(WRITES[name], outside)]
    assert b"ZeroDivisionError" in subprocess.run(command, capture_output=True).stderr


def test_shared_memory_is_not_shared(run: Run) -> None:
    run("open('/dev/shm/cl-bench-test', 'w').write('x')")
    assert not Path("/dev/shm/cl-bench-test").exists()


def test_its_own_folder_is_its_own(run: Run) -> None:
    source = (
        "import os, tempfile\n"
        "assert os.listdir() == []\n"
        "open('a', 'w').write('x')\n"
        "with tempfile.TemporaryDirectory() as folder: open(folder + '/b', 'w').write('y')\n"
        "os.mkdir('c'); os.chmod('c', 0)\n"
        "open(os.devnull, 'w').write('z')\n"
        "assert open('a').read() == 'x'"
    )
    assert run(source).reason == "passed"


def test_a_program_may_remove_its_folder_and_go_elsewhere(run: Run) -> None:
    source = (
        "import os, shutil\nfolder = os.getcwd()\nshutil.rmtree(folder, ignore_errors=True)\n"
        "os.chdir('/')\nassert not os.path.exists(folder) or os.listdir(folder) == []"
    )
    assert run(source).reason == "passed"


def test_a_deep_tree_is_removed(run: Run) -> None:
    outcome = run("import os\nfor _ in range(1050):\n    os.mkdir('d')\n    os.chdir('d')")
    assert outcome.reason in {"passed", "failed: OSError"}  # Refused where the folder is in memory.


@pytest.fixture
def port() -> Iterator[int]:
    """A server of this machine that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_no_network(run: Run, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)):
        pass  # From outside of the sandbox it answers.
    calls = (
        f"socket.create_connection(('127.0.0.1', {port}), timeout=1)",
        "socket.create_connection(('192.0.2.1', 80), timeout=1)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
        "socket.getaddrinfo('example.invalid', 80)",
    )
    for call in calls:
        outcome = run(f"import socket\ntry: {call}\nexcept OSError: pass\nelse: raise ValueError('connected')", BRIEF)
        assert outcome.passed, (call, outcome)


def test_the_environment_is_clean(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("CL_BENCH_CACHE", "somewhere")
    source = (
        "import os, sys\n"
        "names = {'PATH', 'HOME', 'TMPDIR', 'LANG', 'PYTHONHASHSEED', 'LC_CTYPE', 'LD_LIBRARY_PATH'}\n"
        "assert set(os.environ) <= names, os.environ\n"
        "assert os.environ['HOME'] == os.getcwd()\n"
        "assert sys.stdin.read() == ''\n"
        "assert not any('site-packages' in path for path in sys.path)\n"
        "for fd in range(4, 200):\n"
        "    try: os.fstat(fd)\n"
        "    except OSError: continue\n"
        "    if fd > 8: raise ValueError(fd)\n"
    )
    assert run(source).reason == "passed"


def test_the_standard_library_works(run: Run) -> None:
    source = (
        "import asyncio, collections, concurrent.futures, ctypes, dataclasses, decimal, email, heapq, json\n"
        "import itertools, pickle, random, re, sqlite3, statistics, typing, unittest, urllib.request, xml.etree\n"
        "@dataclasses.dataclass\nclass A:\n    x: int = 1\n"
        "assert pickle.loads(pickle.dumps(A())) == A()\n"
        "with concurrent.futures.ThreadPoolExecutor(8) as pool: assert list(pool.map(abs, [-1])) == [1]\n"
        "async def one(): return 1\n"
        "assert asyncio.run(one()) == 1\n"
    )
    if "audit hook" in run("").isolation.network:
        source = source.replace("ctypes, ", "")
    assert run(source).reason == "passed"


def test_the_order_of_sets_is_the_same_in_every_run(run: Run) -> None:
    assert len({run("print({'a', 'b', 'c', 'd', 'e'})").output for _ in range(4)}) == 1

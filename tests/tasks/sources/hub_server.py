"""The hub's protocol on this machine: what ``huggingface_hub`` itself asks for, answered from a ``FakeHub``."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.tasks.sources.fake_hub import LICENCE, FakeHub, git_hash

_INFO = re.compile(r"/api/datasets/(\w+/\w+)(?:/revision/(\w+))?")
_TREE = re.compile(r"/api/datasets/(\w+/\w+)/tree/(\w+)")
_FILE = re.compile(r"/datasets/(\w+/\w+)/resolve/(\w+)/(.+)")


@contextmanager
def serving(hub: FakeHub) -> Iterator[str]:
    """Serve a hub; gives its endpoint."""

    class Handler(_Handler):
        source = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    source: FakeHub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._route(body=False)

    def do_GET(self) -> None:
        self._route(body=True)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _route(self, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        for pattern, answer in ((_INFO, self._info), (_TREE, self._tree), (_FILE, self._file)):
            if found := pattern.fullmatch(path):
                return answer(body, *found.groups())
        self._refuse(404, "EntryNotFound")

    def _info(self, body: bool, path: str, revision: str | None) -> None:
        self.source.calls.append(("info", path))
        commits = self.source.repositories.get(path)
        if commits is None:
            return self._refuse(404, "RepoNotFound")
        commit = list(commits)[-1] if revision in (None, "main") else str(revision)
        if commit not in commits:
            return self._refuse(404, "RevisionNotFound")
        siblings = [self._entry(name, data, "rfilename") for name, data in commits[commit].items()]
        self._json({"id": path, "sha": commit, "cardData": {"license": LICENCE}, "siblings": siblings})

    def _tree(self, body: bool, path: str, commit: str) -> None:
        files = self.source.repositories[path][commit]
        self._json([{"type": "file", **self._entry(name, data, "path")} for name, data in files.items()])

    def _file(self, body: bool, path: str, commit: str, name: str) -> None:
        if path in self.source.gated:
            return self._refuse(403, "GatedRepo")
        data = self.source.repositories[path][commit][name]
        start = int(re.sub(r"bytes=(\d+)-.*", r"\1", self.headers.get("Range", "bytes=0-")))
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", commit)
        self.send_header("Content-Length", str(len(data) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        if not body:
            return
        self.source.calls.append(("file", f"{name}:{start}" if start else name))
        sent = data[::-1] if name in self.source.wrong else data
        if name in self.source.cut:
            self.source.cut.remove(name)
            self.wfile.write(sent[start : len(sent) // 2])
            self.close_connection = True
            return
        self.wfile.write(sent[start:])

    def _entry(self, name: str, data: bytes, key: str) -> dict[str, Any]:
        entry: dict[str, Any] = {key: name, "size": len(data), "blobId": git_hash(data), "oid": git_hash(data)}
        if self.source.large and not name.endswith(".md"):
            sha256 = hashlib.sha256(data).hexdigest()
            entry["lfs"] = {"size": len(data), "sha256": sha256, "oid": sha256, "pointerSize": 1}
        return entry

    def _json(self, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", "refused")
        self.send_header("Content-Length", "0")
        self.end_headers()

"""A page in headless Chromium: WebGPU on SwiftShader, so without a GPU."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

# The last is what makes WebGPU there without a GPU.
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu-sandbox", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic", "--enable-unsafe-webgpu",
)  # fmt: skip
_TYPES = {".js": "text/javascript", ".html": "text/html"}

_WHOLE = """
const post = (name, body) => fetch(`/${name}`, { method: "POST", body });
try {
  SCRIPT
  await post("done", "");
} catch (error) {
  await post("done", String(error?.stack ?? error));
}
"""


def chromium() -> str:
    """The browser; a skip where there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("chromium is not here")
    return found


class _Server(ThreadingHTTPServer):
    """Serves a folder, and keeps what a page posts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.posted: dict[str, bytes] = {}
        self.is_done = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    @property
    def held(self) -> _Server:
        assert isinstance(self.server, _Server)
        return self.server

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: pytest's output is for tests."""

    def do_GET(self) -> None:
        file = self.held.folder / Path(self.path).name
        if not file.is_file():
            self.send_error(404)
            return
        body = file.read_bytes()
        self.send_response(200)
        self.send_header("content-type", _TYPES.get(file.suffix, "application/octet-stream"))
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        name = Path(self.path).name
        self.held.posted[name] = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()
        if name == "done":
            self.held.is_done.set()


def posted_by(script: str, folder: Path, seconds: float = 120) -> Mapping[str, bytes]:
    """What a module script posts, by name, from a page in a folder that it may fetch and import from."""
    browser = chromium()
    (folder / "script.js").write_text(_WHOLE.replace("SCRIPT", script), "utf-8")
    (folder / "page.html").write_text('<!doctype html><script type="module" src="script.js"></script>', "utf-8")
    server = _Server(folder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        address = f"http://127.0.0.1:{server.server_port}/page.html"
        command = [browser, *_FLAGS, f"--user-data-dir={profile}", address]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            assert server.is_done.wait(seconds), f"the page did not end in {seconds} seconds: {sorted(server.posted)}"
        finally:
            process.terminate()
            process.wait(30)
            server.shutdown()
            server.server_close()
    assert not server.posted["done"], server.posted["done"].decode()
    return server.posted


def number(body: bytes) -> float:
    """A number that was posted as JSON."""
    return float(json.loads(body))

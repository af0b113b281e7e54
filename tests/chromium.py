"""Headless Chromium, with WebGPU on SwiftShader, so without a GPU; pages are opened and asked through its pipe."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import threading
import time
from collections.abc import Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

# The last but one is what makes WebGPU there without a GPU; the last makes file descriptors 3 and 4 the pipe. Pyodide's
# functions are not inlined, which takes half of their compiler's time and makes a page's calls no slower.
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu-sandbox", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic", "--disable-dev-shm-usage",
    "--js-flags=--no-wasm-inlining",
    "--enable-unsafe-webgpu", "--remote-debugging-pipe",
)  # fmt: skip
_SECONDS = 300  # that a command may take


def chromium() -> str:
    """The browser; a skip where there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("chromium is not here")
    return found


class Browser:
    """One process, for any number of pages."""

    def __init__(self) -> None:
        self.profile = mkdtemp(prefix="gpusort-chromium-")
        command = [chromium(), *_FLAGS, f"--user-data-dir={self.profile}"]
        (read, self.ours), (self.theirs, write) = os.pipe(), os.pipe()
        inside = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (read, write)]  # not 3 or 4 themselves
        actions = [
            *((os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (1, 2)),
            *((os.POSIX_SPAWN_DUP2, end, number) for end, number in zip(inside, (3, 4), strict=True)),
        ]
        self.process = os.posix_spawn(command[0], command, os.environ, file_actions=actions, setpgroup=0)
        for end in (read, write, *inside):
            os.close(end)
        self.asked, self.held = 0, b""

    def call(self, method: str, session: str = "", **given: object) -> dict[str, Any]:
        """What a command of the DevTools protocol gives."""
        self.asked += 1
        message = {"id": self.asked, "method": method, "params": given, **({"sessionId": session} if session else {})}
        os.write(self.ours, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + _SECONDS
        while True:
            answer = self._next(until)
            assert answer is not None, f"{method}: no answer in {_SECONDS} seconds"
            if answer.get("id") == self.asked:
                assert "error" not in answer, (method, answer["error"])
                found: dict[str, Any] = answer["result"]
                return found

    def _next(self, until: float) -> dict[str, Any] | None:
        """The next message, an event perhaps."""
        while b"\0" not in self.held:
            if not select.select([self.theirs], [], [], max(0, until - time.monotonic()))[0]:
                return None
            part = os.read(self.theirs, 1 << 20)
            assert part, "chromium has ended"
            self.held += part
        line, _, self.held = self.held.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        os.close(self.ours)
        os.close(self.theirs)
        os.killpg(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    """A page of a folder, which is served to this machine alone."""

    def __init__(
        self, browser: Browser, folder: Path, name: str = "index.html", *, first: str = "", width: int = 1200,
        height: int = 900, media: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """`first` is a script that runs before those of the page; `media` are such as prefers-color-scheme."""
        self.browser = browser
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.target = str(browser.call("Target.createTarget", url="about:blank")["targetId"])
        attached = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)
        self.session = str(attached["sessionId"])
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        features = [{"name": feature, "value": value} for feature, value in (media or {}).items()]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=first)
        self.call("Page.navigate", url=f"http://127.0.0.1:{self.server.server_port}/{name}")
        self.run(_LOADED)

    def call(self, method: str, **given: object) -> dict[str, Any]:
        return self.browser.call(method, self.session, **given)

    def run(self, script: str) -> Any:
        """What the body of an asynchronous function returns, by way of JSON."""
        found = self.call(
            "Runtime.evaluate", expression=f"(async () => {{ {script} }})()", awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]["exception"]["description"]
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """A key, such as Tab."""
        codes = {"Tab": 9, "ArrowLeft": 37, "ArrowRight": 39}
        for type in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=type, key=key, code=key, windowsVirtualKeyCode=codes[key])

    def picture(self, file: Path) -> None:
        """All of the page, as PNG."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)
        self.server.shutdown()
        self.server.server_close()


_LOADED = """
while (location.href === "about:blank") await new Promise((done) => setTimeout(done, 5));
if (document.readyState !== "complete") await new Promise((done) => addEventListener("load", done));
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: pytest's output is for tests."""

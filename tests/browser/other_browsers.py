"""Drive Firefox and WebKitGTK without a driver package: two small WebDriver clients.

Firefox speaks Marionette, the protocol behind geckodriver. WebKitGTK has its own WebDriver server,
from Debian's package webkit2gtk-driver, and needs an X server (package xvfb).
"""

import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from tests.support import programs

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # The key of an element's id (WebDriver, 12.2)
PATIENCE = 60.0  # Seconds


class Browser(Protocol):
    """What both clients can do."""

    def goto(self, url: str) -> None: ...
    def run(self, script: str, *arguments: Any) -> Any: ...
    def click(self, element: dict[str, str]) -> None: ...
    def type(self, element: dict[str, str], text: str) -> None: ...


class Missing(Exception):
    """A browser that is not installed."""


def until(described: str, look: Callable[[], Any]) -> Any:
    """Wait until `look()` returns a result."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise TimeoutError(f"waited in vain for {described}")


class Firefox:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._count = 0
        self._receive()  # The greeting
        self._call("NewSession", {})

    def goto(self, url: str) -> None:
        self._call("Navigate", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        return self._call("ExecuteScript", {"script": script, "args": arguments})["value"]

    def click(self, element: dict[str, str]) -> None:
        self._call("ElementClick", {"id": element[ELEMENT]})

    def type(self, element: dict[str, str], text: str) -> None:
        self._call("ElementSendKeys", {"id": element[ELEMENT], "text": text})

    def _call(self, command: str, parameters: dict[str, Any]) -> Any:
        self._count += 1
        message = json.dumps([0, self._count, f"WebDriver:{command}", parameters]).encode()
        self._connection.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self._receive()
        if error:
            raise RuntimeError(error["message"])
        return result

    def _receive(self) -> Any:
        length = b""
        while not length.endswith(b":"):
            length += self._connection.recv(1)
        wanted, found = int(length[:-1]), b""
        while len(found) < wanted:
            found += self._connection.recv(wanted - len(found))
        return json.loads(found)


class WebKit:
    def __init__(self, address: str, binary: Path) -> None:
        options = {"binary": str(binary), "args": ["--automation"]}
        wanted = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        self._address = f"{address}/session"
        found = self._call("", {"capabilities": wanted})
        self._address += f"/{found['sessionId']}"

    def goto(self, url: str) -> None:
        self._call("/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        return self._call("/execute/sync", {"script": script, "args": arguments})

    def click(self, element: dict[str, str]) -> None:
        self._call(f"/element/{element[ELEMENT]}/click", {})

    def type(self, element: dict[str, str], text: str) -> None:
        self._call(f"/element/{element[ELEMENT]}/value", {"text": text})

    def _call(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(  # noqa: S310 - our own address
            self._address + path,
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - same
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None


@contextlib.contextmanager
def firefox(folder: Path) -> Iterator[Browser]:
    """Start Firefox with a new profile in `folder`."""
    port = _free_port()
    (folder / "user.js").write_text(f'user_pref("marionette.port", {port});\n')
    command = [_program("firefox-esr", "firefox"), "--headless", "--marionette"]
    with _running([*command, "--no-remote", "--profile", str(folder)], HOME=str(folder)):
        connection = until("Firefox", lambda: _connected(port))
        with connection:
            yield Firefox(connection)


@contextlib.contextmanager
def webkit(folder: Path) -> Iterator[Browser]:
    """Start WebKitGTK's small browser on an X server of its own."""
    driver, x_server = _program("WebKitWebDriver"), _program("Xvfb")
    binary = next(Path("/usr/lib").glob("*/webkit2gtk-4.1/MiniBrowser"), None)
    if binary is None:
        raise Missing("MiniBrowser of libwebkit2gtk-4.1")
    port, display = _free_port(), f":{_free_port()}"
    settings = {"DISPLAY": display, "HOME": str(folder), "LIBGL_ALWAYS_SOFTWARE": "1"}
    with (
        _running([x_server, display, "-screen", "0", "1280x1024x24", "-nolisten", "tcp"]),
        _running([driver, f"--port={port}"], **settings),
    ):
        until("Xvfb", Path(f"/tmp/.X11-unix/X{display[1:]}").exists)  # noqa: S108 - the X server's choice
        until("WebKitWebDriver", lambda: _connected(port)).close()
        yield WebKit(f"http://127.0.0.1:{port}", binary)


@contextlib.contextmanager
def _running(command: list[str], **settings: str) -> Iterator[None]:
    """Run a program quietly until the block ends."""
    quiet = subprocess.DEVNULL
    environment = programs.environment(**settings)
    with subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet) as process:
        try:
            yield
        finally:
            process.terminate()


def _program(*names: str) -> str:
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        raise Missing(names[0])
    return path


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _connected(port: int) -> socket.socket | None:
    try:
        return socket.create_connection(("127.0.0.1", port))
    except OSError:
        return None

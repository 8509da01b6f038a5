"""Each server records its address in its data folder."""

import socket
import wsgiref.simple_server
import wsgiref.util
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from comments.store.folder import server_address


def _serve(status: str) -> wsgiref.simple_server.WSGIServer:
    """Return a local server that answers one request."""

    def answer(environ: Any, start_response: Any) -> list[bytes]:
        assert environ["PATH_INFO"] == "/healthz"
        start_response(status, [])
        return [b""]

    class Quiet(wsgiref.simple_server.WSGIRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    return wsgiref.simple_server.make_server("127.0.0.1", 0, answer, handler_class=Quiet)


@pytest.mark.parametrize("public", ["", "https://comments.example"])
@pytest.mark.parametrize(("status", "is_found"), [("200 OK", True), ("404 Not Found", False)])
def test_an_address_is_valid_while_a_server_answers_there(
    tmp_path: Path, status: str, is_found: bool, public: str
) -> None:
    with _serve(status) as server:
        url = f"http://127.0.0.1:{server.server_port}/"
        server_address.note(tmp_path, "http://127.0.0.1:1/")
        server_address.note(tmp_path, url, public)
        thread = Thread(target=server.handle_request)
        thread.start()
        assert server_address.find(tmp_path) == ((public or url) if is_found else "")
        thread.join()
    assert server_address.find(tmp_path) == ""
    assert [each.name for each in tmp_path.iterdir()] == ["address"]
    assert (tmp_path / "address").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "noted", [b"", b"nonsense", b"http://[::1", b"http://x:99999999/", b"\xff"]
)
def test_a_damaged_record_is_ignored(tmp_path: Path, noted: bytes) -> None:
    (tmp_path / "address").write_bytes(noted)
    assert server_address.find(tmp_path) == ""


def test_a_listener_that_is_not_an_http_server_is_ignored(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server_address.note(tmp_path, f"http://127.0.0.1:{listener.getsockname()[1]}/")

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(b"220 mail.example ESMTP\r\n")

        thread = Thread(target=answer)
        thread.start()
        assert server_address.find(tmp_path) == ""
        thread.join()


def test_without_a_record_there_is_no_address(tmp_path: Path) -> None:
    assert server_address.find(tmp_path) == ""

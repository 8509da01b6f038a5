"""Run nginx and Caddy with the files in deploy/, changed only in addresses and certificates."""

import contextlib
import dataclasses
import getpass
import http.client
import os
import shutil
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import trustme

from tests.support import optional_tools, programs

NAME = "comments.example"
_FILES = programs.ROOT / "deploy"

# The part of nginx's configuration that a distribution brings, with all files in one folder.
_NGINX = """
daemon off;
worker_processes 1;
user {user};
pid {folder}/pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/flatthread.conf;
}}
"""
# Without the network: no certificate from outside, nothing in the system's trusted certificates.
_CADDY = """{
	admin off
	auto_https disable_redirects
	local_certs
	skip_install_trust
}
"""


@dataclasses.dataclass(frozen=True)
class Proxy:
    """A running proxy: its port for HTTPS and the certificates that a reader trusts.

    `has_buffers` says whether the service gets a request only when the proxy has all of it.
    """

    port: int
    trust: ssl.SSLContext
    has_buffers: bool

    def connection(self, source: str = "127.0.0.1") -> http.client.HTTPSConnection:
        """Return a connection of a reader who has the address `source`."""
        made = http.client.HTTPSConnection(NAME, self.port, timeout=programs.PATIENCE)
        reached = socket.create_connection(
            ("127.0.0.1", self.port), programs.PATIENCE, source_address=(source, 0)
        )
        made.sock = self.trust.wrap_socket(reached, server_hostname=NAME)
        return made

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        source: str = "127.0.0.1",
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Send one request, and return the answer and its body."""
        with contextlib.closing(self.connection(source)) as connection:
            connection.request(method, path, body=body, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer, answer.read()


@contextlib.contextmanager
def nginx(folder: Path, service: int) -> Iterator[Proxy]:
    """Run nginx in front of the service at a port of this machine."""
    program = _program("nginx")
    authority = trustme.CA()
    issued = authority.issue_cert(NAME)
    issued.cert_chain_pems[0].write_to_path(folder / "fullchain.pem")
    issued.private_key_pem.write_to_path(folder / "privkey.pem")
    plain, port = _free_port(), _free_port()
    changes = {
        "127.0.0.1:8080": f"127.0.0.1:{service}",
        "listen 80;": f"listen 127.0.0.1:{plain};",
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "listen [::]:80;": "",
        "listen [::]:443 ssl;": "",
        f"/etc/letsencrypt/live/{NAME}/": f"{folder}/",
    }
    _write_changed("nginx.conf", changes, folder / "flatthread.conf")
    main = folder / "main.conf"
    main.write_text(_NGINX.format(folder=folder, user=getpass.getuser()))
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    command: list[str | Path] = [program, "-e", "stderr", "-p", folder, "-c", main]
    with programs.running(command, environ=programs.environment()) as running:
        _wait_for(running, lambda: _accepts(port))
        yield Proxy(port, trust, has_buffers=True)


@contextlib.contextmanager
def caddy(folder: Path, service: int) -> Iterator[Proxy]:
    """Run Caddy in front of the service at a port of this machine."""
    program = _program("caddy")
    port = _free_port()
    file = folder / "Caddyfile"
    _write_changed("Caddyfile", {"127.0.0.1:8080": f"127.0.0.1:{service}"}, file)
    file.write_text(_CADDY + file.read_text())
    environ = programs.environment(
        PUBLIC_URL=f"https://{NAME}:{port}", HOME=str(folder), XDG_DATA_HOME=str(folder)
    )
    root = folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"
    command: list[str | Path] = [program, "run", "--adapter", "caddyfile", "--config", file]
    with programs.running(command, environ=environ) as running:
        _wait_for(running, lambda: root.exists() and _accepts(port))
        yield Proxy(port, ssl.create_default_context(cafile=root), has_buffers=False)


def connections_to(port: int) -> int:
    """Return how many TCP connections to a port of this machine are established."""
    established, there = "01", f"0100007F:{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2] == there and row[3] == established for row in rows)


def _program(name: str) -> str:
    # Debian has nginx in a folder that is not in the PATH of every user.
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    optional_tools.require(found, f"needs {name}")
    assert found is not None
    return found


def _write_changed(name: str, changes: Mapping[str, str], target: Path) -> None:
    text = (_FILES / name).read_text()
    for before, after in changes.items():
        assert before in text, before
        text = text.replace(before, after)
    target.write_text(text)


def _wait_for(running: programs.Program, is_ready: Callable[[], bool]) -> None:
    programs.wait_until(lambda: is_ready() or running.process.poll() is not None, "the proxy")
    assert running.process.poll() is None, running.lines


def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])

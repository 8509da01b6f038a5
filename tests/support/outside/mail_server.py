"""Run a real SMTP server on loopback that records mail and can refuse recipients."""

import asyncio
import contextlib
import dataclasses
import email
import re
import socket
from collections.abc import Awaitable, Callable, Iterator
from email import policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller

from comments import config, setting_values
from tests.support import loopback_servers

SENDER = "comments@service.example"
PUBLIC = "https://service.example"


@dataclasses.dataclass
class Box:
    """The mail that a server accepted. `refuse` returns the reply for a refused recipient."""

    port: int = 0
    taken: list[tuple[str, EmailMessage]] = dataclasses.field(default_factory=list)
    raw: list[bytes] = dataclasses.field(default_factory=list)
    refuse: Callable[[str], str | None] = lambda _: None
    sessions: set[int] = dataclasses.field(default_factory=set)

    async def handle_RCPT(  # noqa: N802 - aiosmtpd defines the names
        self, _server: Any, session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        self.sessions.add(id(session))
        answer = self.refuse(address)
        if answer is None:
            envelope.rcpt_tos.append(address)
        return answer or "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        made = email.message_from_bytes(envelope.content, policy=policy.default)
        (address,) = envelope.rcpt_tos
        self.taken.append((address, made))
        self.raw.append(bytes(envelope.content))
        return "250 OK"

    @property
    def recipients(self) -> list[str]:
        return [address for address, _ in self.taken]

    def text(self, number: int = -1) -> str:
        body = self.taken[number][1].get_body(("plain",))
        assert body is not None
        return str(body.get_content()).replace("\r\n", "\n")

    def link(self, number: int = -1, page: str = "") -> str:
        """Return the path and query of a message's link to our pages."""
        found = re.search(rf"{PUBLIC}(/subscriptions/{page}\S+)", self.text(number))
        assert found is not None, self.text(number)
        return found[1]

    def settings(self, **more: Any) -> config.Settings:
        smtp = setting_values.Smtp(setting_values.Security.NONE, "localhost", self.port)
        given: dict[str, Any] = {
            "secret": "a secret of the tests",
            "smtp": smtp,
            "mail_from": SENDER,
        }
        # Tests use the test client's host name and host names that do not belong to the service.
        named = {"public_url": PUBLIC, "hosts": ("localhost", "127.0.0.1", "evil.example")}
        return config.Settings(**given | named | more)


class Server(Controller):
    """An SMTP server on a socket that it binds itself, so no other program can take the port."""

    def __init__(self, box: Any, **options: Any) -> None:
        self._socket = socket.create_server(("localhost", 0))
        port = self._socket.getsockname()[1]
        super().__init__(box, hostname="localhost", port=port, ready_timeout=60.0, **options)

    def _create_server(self) -> Awaitable[asyncio.AbstractServer]:
        return self.loop.create_server(
            self._factory_invoker, sock=self._socket, ssl=self.ssl_context
        )


@contextlib.contextmanager
def serving() -> Iterator[Box]:
    """Run a server without TLS."""
    box = Box()
    server = Server(box)
    box.port = server.port
    server.start()
    try:
        yield box
    finally:
        server.stop()


@contextlib.contextmanager
def away() -> Iterator[Box]:
    """Yield a port on which no server listens."""
    with loopback_servers.unused_port() as port:
        yield Box(port)

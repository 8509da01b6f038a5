"""Test what a real SMTP server receives, how its replies are read, and how we connect to it."""

import contextlib
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import AuthResult

from comments import config, errors, setting_values
from comments.domain.outcomes import End
from comments.notifications.mail import smtp
from tests.support import loopback_servers
from tests.support.outside import mail_server
from tests.support.outside.sample_mail import SENDER, made


class Box:
    """The mail that a server accepted and the replies that it sends."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, list[str], bytes]] = []
        self.rcpt: str | None = None
        self.data: str | None = None

    async def handle_RCPT(  # noqa: N802
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> Any:
        if self.rcpt:
            return self.rcpt
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> Any:  # noqa: N802
        if self.data:
            return self.data
        self.taken.append((envelope.mail_from, envelope.rcpt_tos, envelope.content))
        return "250 OK"


@contextlib.contextmanager
def server(box: Box, tmp_path: Path, security: Any, *, password: Any = None) -> Iterator[Any]:
    """Run a mail server on loopback; yield its port and its certificate file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    loopback_servers.AUTHORITY.issue_cert("localhost").configure_cert(context)
    authority = tmp_path / "authority.pem"
    loopback_servers.AUTHORITY.cert_pem.write_to_path(str(authority))
    options: dict[str, Any] = {}
    if security is setting_values.Security.TLS:
        options |= {"ssl_context": context}
    if security is setting_values.Security.STARTTLS:
        options |= {"tls_context": context, "require_starttls": True}
    if password:

        def check(_server: Any, _session: Any, _envelope: Any, _mechanism: Any, data: Any) -> Any:
            right = (data.login, data.password) == (b"us er", password)
            return AuthResult(success=right, handled=False)

        options |= {
            "authenticator": check,
            "auth_required": True,
            "auth_require_tls": security is setting_values.Security.STARTTLS,
        }
    controller = mail_server.Server(box, **options)
    controller.start()
    try:
        yield controller.port, str(authority)
    finally:
        controller.stop()


def reach(where: Any, security: Any, login: str = "") -> Any:
    port, authority = where
    values = {
        "SECRET": "0123456789abcdef",
        "SMTP_URL": f"{security.value}://{login}localhost:{port}",
        "SMTP_CA_FILE": authority,
        "MAIL_FROM": SENDER,
        "PUBLIC_URL": "https://service.example",
    }
    return config.load(values).smtp


# aiosmtpd warns about servers that require AUTH without STARTTLS, as the implicit-TLS server does.
@pytest.mark.filterwarnings("ignore:Requiring AUTH")
@pytest.mark.parametrize(
    ("security", "login"),
    [
        (setting_values.Security.NONE, ""),
        (setting_values.Security.TLS, ""),
        (setting_values.Security.TLS, "us%20er:p%40ss@"),
        (setting_values.Security.STARTTLS, ""),
        (setting_values.Security.STARTTLS, "us%20er:p%40ss@"),
    ],
)
def test_a_message_arrives_as_it_was_made(tmp_path: Path, security: Any, login: str) -> None:
    box = Box()
    with server(box, tmp_path, security, password=b"p@ss" if login else None) as where:
        assert smtp.send(reach(where, security, login), made()).end is End.DELIVERED
    ((sender, recipients, content),) = box.taken
    assert (sender, recipients) == (SENDER, ["ann@example.org"])
    assert content == made().raw


@pytest.mark.parametrize(
    ("where", "answer", "end"),
    [
        ("rcpt", "550 no such user", End.GIVE_UP),
        ("rcpt", "450 mailbox busy", End.RETRY),
        ("data", "554 no", End.GIVE_UP),
        ("data", "451 later", End.RETRY),
    ],
)
def test_the_meaning_of_each_smtp_reply(tmp_path: Path, where: str, answer: str, end: Any) -> None:
    box = Box()
    setattr(box, where, answer)
    plain = setting_values.Security.NONE
    with server(box, tmp_path, plain) as at:
        found = smtp.send(reach(at, plain), made())
    assert (found.end, found.reason) == (end, f"refused: {answer[:3]}")


def test_a_wrong_password_is_not_held_against_the_message(tmp_path: Path) -> None:
    box, security = Box(), setting_values.Security.STARTTLS
    with server(box, tmp_path, security, password=b"right") as where:
        found = smtp.send(reach(where, security, "us%20er:wrong@"), made())
        assert smtp.fault(reach(where, security, "us%20er:wrong@")) == "sign-in refused: 535"
        assert smtp.fault(reach(where, security, "us%20er:right@")) == ""
    assert (found.end, found.reason) == (End.RETRY, "sign-in refused: 535")
    assert box.taken == []


@pytest.mark.parametrize(
    "security", [setting_values.Security.TLS, setting_values.Security.STARTTLS]
)
def test_a_server_with_an_untrusted_certificate_gets_nothing(tmp_path: Path, security: Any) -> None:
    box = Box()
    with server(box, tmp_path, security) as (port, _):
        found = smtp.send(reach((port, ""), security), made())
    assert (found.end, box.taken) == (End.RETRY, [])


def test_a_server_without_starttls_gets_nothing(tmp_path: Path) -> None:
    box = Box()
    with server(box, tmp_path, setting_values.Security.NONE) as where:
        found = smtp.send(reach(where, setting_values.Security.STARTTLS), made())
    assert (found.end, box.taken) == (End.RETRY, [])


def test_a_silent_or_unavailable_server_is_retried_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smtp, "TIMEOUT", 0.2)
    plain = setting_values.Security.NONE
    with loopback_servers.peer(lambda _connection, over: over.wait(10)) as port:  # type: ignore[arg-type]
        assert smtp.send(reach((port, ""), plain), made()).end is End.RETRY
    assert smtp.send(setting_values.Smtp(plain, "127.0.0.1", port), made()).end is End.RETRY


def reset(connection: Any) -> None:
    """Reset a connection, which discards unread bytes."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def scripted(last: Any, ending: Any) -> Any:
    """Return a server that accepts a message, replies `last`, and then closes the connection."""

    def talk(connection: Any, _over: Any) -> None:
        said = connection.makefile("rb")
        connection.sendall(b"220 ready\r\n")
        for line in said:
            word = line[:4].upper().strip()
            if word == b"DATA":
                connection.sendall(b"354 go on\r\n")
                for text in said:
                    if text == b".\r\n":
                        break
                connection.sendall(last)
                said.close()
                ending(connection)
                return
            connection.sendall(b"250 ok\r\n")

    return talk


@pytest.mark.parametrize(
    ("last", "end"),
    [
        (b"250 taken\r\n", End.DELIVERED),
        (b"", End.RETRY),
        (b"25", End.RETRY),
        (b"not a number\r\n", End.RETRY),
        (b"250 " + b"x" * 10_000_000, End.RETRY),
        (b"451 later\r\n", End.RETRY),
        (b"554 no\r\n", End.GIVE_UP),
    ],
)
@pytest.mark.parametrize("ending", [reset, socket.socket.close])
def test_a_servers_reply_counts_however_the_connection_ends(
    last: bytes, end: Any, ending: Any
) -> None:
    with loopback_servers.peer(scripted(last, ending)) as port:
        found = smtp.send(reach((port, ""), setting_values.Security.NONE), made())
    # If a reset loses the reply, the mail is sent again with the same id.
    allowed = {end, End.RETRY} if ending is reset else {end}
    assert found.end in allowed


# --- Settings --------------------


@pytest.mark.parametrize(
    ("url", "sender", "named"),
    [
        ("localhost:25", SENDER, "SMTP_URL"),
        ("http://localhost", SENDER, "SMTP_URL"),
        ("smtp://", SENDER, "SMTP_URL"),
        ("smtp://localhost:x", SENDER, "SMTP_URL"),
        ("smtp://us:pass-word@localhost/x", SENDER, "SMTP_URL"),
        ("smtp+plain://us:pass-word@localhost", SENDER, "unencrypted"),
        ("smtp://localhost", "", "MAIL_FROM"),
        ("", "nobody", "MAIL_FROM"),
        ("", "a@x.example, b@y.example", "MAIL_FROM"),
    ],
)
def test_an_invalid_setting_is_named_and_its_value_not_shown(
    url: str, sender: str, named: str
) -> None:
    values = {"SECRET": "0123456789abcdef", "SMTP_URL": url, "MAIL_FROM": sender}
    values["PUBLIC_URL"] = "https://service.example"
    with pytest.raises(errors.Misconfigured, match=named) as caught:
        config.load(values)
    assert "pass-word" not in str(caught.value)


def test_a_password_is_not_shown() -> None:
    assert "word" not in repr(setting_values.Smtp(setting_values.Security.TLS, "h", 1, "u", "word"))

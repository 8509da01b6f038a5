"""Mail: its form for ever, nothing hostile in it, and what a real server's answers mean."""

import contextlib
import email
import re
import socket
import ssl
import struct
from datetime import UTC, datetime
from email import policy
from html.parser import HTMLParser

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from hypothesis import given
from hypothesis import strategies as st

from comments import config, errors, mail
from comments.outcomes import End
from tests.comments import receivers

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SENDER = "comments@service.example"
PLACE = "https://site.example/a?b=c&d#comment-x"
UNSUBSCRIBE = "https://service.example/unsubscribe/token"
# Mailboxes know messages by these ids.
GOLDEN = """\
From: garden <comments@service.example>
To: ann@example.org
Subject: =?utf-8?q?B=C3=B6b?= commented on A page
Date: Fri, 02 Jan 2026 03:04:05 +0000
Message-ID: <DIGEST@service.example>
Auto-Submitted: auto-generated
X-Auto-Response-Suppress: All
List-Unsubscribe: <https://service.example/unsubscribe/token>
List-Unsubscribe-Post: List-Unsubscribe=One-Click
MIME-Version: 1.0
Content-Type: multipart/alternative;
 boundary="=-DIGEST"
"""


def notice(**more):
    plain = {
        "event": "aaaqeayeaudaocajbifqydiob4.2",
        "recipient": "ann@example.org",
        "site": "garden",
        "name": "Böb",
        "title": "A page",
        "text": "Hello\n<b>you</b>",
        "place": PLACE,
        "unsubscribe": UNSUBSCRIBE,
    }
    return mail.Notice(**plain | more)


def made(**more):
    return mail.message(notice(**more), SENDER, now=NOW)


class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in {"href", "src"}]


# --- Messages --------------------


def test_the_form_of_a_message_is_for_ever():
    found = made().as_string(policy=policy.SMTP.clone(linesep="\n"))
    head, _, _ = found.partition("\n\n")
    digest = re.search(r"<(\w{32})@", head)[1]
    assert digest == "34b162163a92dda2cdd7104bf9a84bf5"
    assert f"{head}\n" == GOLDEN.replace("DIGEST", digest)
    plain, rich = made().iter_parts()
    assert (plain.get_content_type(), rich.get_content_type()) == ("text/plain", "text/html")
    assert plain.get_content() == (
        "Böb commented on A page:\n\n> Hello\n> <b>you</b>\n\n"
        f"Read it: {PLACE}\n\nNo more of these: {UNSUBSCRIBE}\n"
    )
    assert rich.get_content() == (
        "<!doctype html>\n<p>Böb commented on A page:</p>\n"
        "<blockquote>Hello<br>\n&lt;b&gt;you&lt;/b&gt;</blockquote>\n"
        f'<p><a href="{PLACE.replace("&", "&amp;")}">Read it</a></p>\n'
        f'<p><a href="{UNSUBSCRIBE}">No more of these</a></p>\n'
    )


def test_a_second_message_of_an_event_has_the_id_of_the_first():
    later = mail.message(notice(text="edited"), SENDER, now=datetime(2026, 2, 1, tzinfo=UTC))
    assert later["Message-ID"] == made()["Message-ID"]
    others = [made(event="x.1"), made(recipient="bob@example.org")]
    assert len({each["Message-ID"] for each in (later, *others)}) == 3


@pytest.mark.parametrize(
    "text",
    [
        "http://evil.example/a",
        "HTTPS://evil.example",
        "see evil.example now",
        "www.evil.com",
        "evil。com",
        "mail me@evil.example",
        "1.2.3.4",
        "<a href='http://evil.example'>x</a>",
        "evil\u200b.example",
        "bücher.example",
        "(evil.example)",
    ],
)
@pytest.mark.parametrize("field", ["name", "title", "text"])
def test_nothing_that_becomes_a_link_is_left(field, text):
    found = made(**{field: text})
    told = found["Subject"] + "".join(part.get_content() for part in found.iter_parts())
    assert "[link]" in told
    left = told.replace(PLACE, "").replace(UNSUBSCRIBE, "").replace(PLACE.replace("&", "&amp;"), "")
    assert not re.search(r"evil\S?\.|\.com|\.example|://|1\.2", left)


def test_a_word_of_any_length_is_looked_through_once():
    """With the square of its length this would take hours."""
    assert mail.words("a" * 3_000_000) == "a" * 3_000_000
    assert mail.words("1." * 1_000_000 + "x") == "[link]"


# Each is several addresses, or none, or one to who reads it and another one to who sends to it.
ODD = [
    "",
    "ann",
    "@example.org",
    "ann@",
    "ann@localhost",
    "a@x.example,b@y.example",
    "a@x.example;b@y.example",
    "a:b;",
    "a:b@x.example;",
    "a:b@x.example,c@y.example;",
    "a@x.example b@y.example",
    "a@x.example\tb@y.example",
    '"a b"@x.example',
    '"a"@x.example',
    '"a@x.example b"@y.example',
    '"a@x.example,b"@y.example',
    '"a\\"@x.example, b"@y.example',
    "Ann <a@x.example>",
    "<a@x.example>",
    "a@x.example <b@y.example>",
    "a(b)@x.example",
    "a@x.example (b)",
    "@y.example:a@x.example",
    "a@[127.0.0.1]",
    "a@[IPv6:::1]",
    "a@127.0.0.1",
    "a@127.1",
    "a@x.0x7f",
    "a@x.1",
    "a@x@y.example",
    "a\uff20x.example",
    "a@x\uff0eexample",
    "a@x\u3002example",
    "a@x.example\r\nBcc: b@y.example",
    "a@x.example\n",
    " a@x.example",
    "a@x.example ",
    "a@x.example\x00",
    "a@x.example.",
    "a@.x.example",
    "a@x..example",
    ".a@x.example",
    "a.@x.example",
    "a..b@x.example",
    "\u00e9@x.example",
    "a@\u00e9.example",
    f"{'a' * 65}@x.example",
    f"a@{'x.' * 130}example",
    f"{'a' * 64}@{'x.' * 91}examples",  # 255 characters
]


HOSTILE = st.text() | st.sampled_from(
    [
        "a\r\nBcc: x@evil.example",
        "\n.\n",
        "<img src=x>",
        "\ud800",
        "=?utf-8?q?x?=",
        "\x00",
        "--=-x--",
    ]
)


@given(HOSTILE, HOSTILE, HOSTILE)
def test_whatever_people_write_is_words(name, title, text):
    raw = made(name=name, title=title, text=text).as_bytes()
    found = email.message_from_bytes(raw, policy=policy.default)
    assert found.keys() == made().keys()
    assert found["To"] == "ann@example.org"
    assert "\n" not in found["Subject"]
    plain, rich = found.iter_parts()
    assert not {*found.defects, *plain.defects, *rich.defects}
    shown = Links(rich.get_content())
    assert shown.links == [PLACE, UNSUBSCRIBE]
    assert shown.tags <= {"p", "a", "blockquote", "br"}
    assert plain.get_content().count("://") == 2
    assert max(map(len, raw.split(b"\r\n"))) <= 998


@pytest.mark.parametrize("address", ODD)
def test_only_one_plain_address_is_written_to(address):
    with pytest.raises(errors.BadInput) as caught:
        made(recipient=address)
    assert caught.value.field == "email"


@pytest.mark.parametrize(
    "address",
    [
        "a@x.example",
        "o'ann+news@x-1.y2.example",
        "a@1.2.example",
        "a@x.xn--p1ai",
        f"{'a' * 64}@{'x.' * 91}example",  # 254 characters
    ],
)
def test_a_plain_address_is_written_to(address):
    assert made(recipient=address)["To"] == address


@pytest.mark.parametrize(
    "url", ["", "javascript:alert(1)", "https://a b", "https://a\r\nX: y", "//a", 'https://a"']
)
@pytest.mark.parametrize("field", ["place", "unsubscribe"])
def test_a_link_of_ours_is_a_web_address(field, url):
    with pytest.raises(errors.BadInput) as caught:
        made(**{field: url})
    assert caught.value.field == field


# --- Sending --------------------


class Box:
    """What a server took, and how it answers."""

    def __init__(self):
        self.taken = []
        self.rcpt = self.data = None

    async def handle_RCPT(self, _server, _session, envelope, address, _options):  # noqa: N802
        if self.rcpt:
            return self.rcpt
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server, _session, envelope):  # noqa: N802
        if self.data:
            return self.data
        self.taken.append((envelope.mail_from, envelope.rcpt_tos, envelope.content))
        return "250 OK"


@contextlib.contextmanager
def server(box, tmp_path, security, *, password=None):
    """A mail server on loopback, and how to reach it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    receivers.AUTHORITY.issue_cert("localhost").configure_cert(context)
    authority = tmp_path / "authority.pem"
    receivers.AUTHORITY.cert_pem.write_to_path(str(authority))
    options = {"hostname": "localhost", "port": 0, "ready_timeout": 30.0}
    if security is config.Security.TLS:
        options |= {"ssl_context": context}
    if security is config.Security.STARTTLS:
        options |= {"tls_context": context, "require_starttls": True}
    if password:

        def check(_server, _session, _envelope, _mechanism, data):
            right = (data.login, data.password) == (b"us er", password)
            return AuthResult(success=right, handled=False)

        options |= {
            "authenticator": check,
            "auth_required": True,
            "auth_require_tls": security is config.Security.STARTTLS,
        }
    with socket.create_server(("localhost", 0)) as free:
        options["port"] = free.getsockname()[1]
    controller = Controller(box, **options)
    controller.start()
    try:
        yield options["port"], str(authority)
    finally:
        controller.stop()


def reach(where, security, login=""):
    port, authority = where
    values = {
        "SECRET": "0123456789abcdef",
        "SMTP_URL": f"{security.value}://{login}localhost:{port}",
        "SMTP_AUTHORITY": authority,
        "MAIL_FROM": SENDER,
        "PUBLIC_URL": "https://service.example",
    }
    return config.load(values).smtp


@pytest.mark.filterwarnings("ignore:Requiring AUTH")  # over TLS from the start, it asks for none
@pytest.mark.parametrize(
    ("security", "login"),
    [
        (config.Security.NONE, ""),
        (config.Security.TLS, ""),
        (config.Security.TLS, "us%20er:p%40ss@"),
        (config.Security.STARTTLS, ""),
        (config.Security.STARTTLS, "us%20er:p%40ss@"),
    ],
)
def test_a_message_arrives_as_it_was_made(tmp_path, security, login):
    box = Box()
    with server(box, tmp_path, security, password=b"p@ss" if login else None) as where:
        assert mail.send(reach(where, security, login), made()).end is End.DELIVERED
    ((sender, recipients, content),) = box.taken
    assert (sender, recipients) == (SENDER, ["ann@example.org"])
    assert content == made().as_bytes()


@pytest.mark.parametrize(
    ("where", "answer", "end"),
    [
        ("rcpt", "550 no such user", End.GIVE_UP),
        ("rcpt", "450 mailbox busy", End.RETRY),
        ("data", "554 no", End.GIVE_UP),
        ("data", "451 later", End.RETRY),
    ],
)
def test_what_an_answer_means(tmp_path, where, answer, end):
    box = Box()
    setattr(box, where, answer)
    plain = config.Security.NONE
    with server(box, tmp_path, plain) as at:
        found = mail.send(reach(at, plain), made())
    assert (found.end, found.reason) == (end, f"refused: {answer[:3]}")


def test_a_wrong_password_is_not_the_messages_fault(tmp_path):
    box, security = Box(), config.Security.STARTTLS
    with server(box, tmp_path, security, password=b"right") as where:
        found = mail.send(reach(where, security, "us%20er:wrong@"), made())
    assert (found.end, found.reason) == (End.RETRY, "did not let us in: 535")
    assert box.taken == []


@pytest.mark.parametrize("security", [config.Security.TLS, config.Security.STARTTLS])
def test_a_server_that_nobody_vouches_for_gets_nothing(tmp_path, security):
    box = Box()
    with server(box, tmp_path, security) as (port, _):
        found = mail.send(reach((port, ""), security), made())
    assert (found.end, box.taken) == (End.RETRY, [])


def test_a_server_without_starttls_gets_nothing(tmp_path):
    box = Box()
    with server(box, tmp_path, config.Security.NONE) as where:
        found = mail.send(reach(where, config.Security.STARTTLS), made())
    assert (found.end, box.taken) == (End.RETRY, [])


def test_a_server_that_is_silent_or_away_is_asked_later(monkeypatch):
    monkeypatch.setattr(mail, "TIMEOUT", 0.2)
    plain = config.Security.NONE
    with receivers.peer(lambda _connection, over: over.wait(10)) as port:
        assert mail.send(reach((port, ""), plain), made()).end is End.RETRY
    assert mail.send(config.Smtp(plain, "127.0.0.1", port), made()).end is End.RETRY


def reset(connection):
    """End a connection at once: what is on its way is lost."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def scripted(last, ending):
    """Takes a message as servers do, says `last` about it, and then ends in its own way."""

    def talk(connection, _over):
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
def test_what_a_server_said_counts_however_it_parts(last, end, ending):
    with receivers.peer(scripted(last, ending)) as port:
        found = mail.send(reach((port, ""), config.Security.NONE), made())
    # What is reset may be lost before it is read: then it is sent again, under the same id.
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
        ("smtp+plain://us:pass-word@localhost", SENDER, "in the clear"),
        ("smtp://localhost", "", "MAIL_FROM"),
        ("", "nobody", "MAIL_FROM"),
        ("", "a@x.example, b@y.example", "MAIL_FROM"),
    ],
)
def test_a_wrong_setting_is_named_and_not_shown(url, sender, named):
    values = {"SECRET": "0123456789abcdef", "SMTP_URL": url, "MAIL_FROM": sender}
    values["PUBLIC_URL"] = "https://service.example"
    with pytest.raises(errors.Misconfigured, match=named) as caught:
        config.load(values)
    assert "pass-word" not in str(caught.value)


def test_a_password_is_not_shown():
    assert "word" not in repr(config.Smtp(config.Security.TLS, "h", 1, "u", "word"))

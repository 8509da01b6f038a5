"""Hostile mail content stays plain text in every mail program.

Names, titles and texts arrive over HTTP, and a real mail server receives the mail. Two independent
parsers read the mail: the standard library's oldest parser and `mail_reader`, which decodes
everything that may be an encoded word.
"""

import email
import itertools
import re
import unicodedata
from base64 import b64encode
from email.header import decode_header, make_header

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import app as apps
from comments.domain import records
from comments.moderation.policy import policy_changes
from comments.notifications.mail import plain_words
from comments.sites import site_settings
from comments.store import connection
from tests.support.histories import counter_oracle
from tests.support.outside import mail_reader, mail_server, sample_mail
from tests.support.outside.mail_server import Box
from tests.support.outside.mail_service import MailService, Said

OURS = [
    "from", "to", "subject", "date", "message-id", "auto-submitted", "x-auto-response-suppress",
    "in-reply-to", "references", "list-unsubscribe", "list-unsubscribe-post", "mime-version",
    "content-type",
]  # fmt: skip
FOLLOWER, MODERATOR = "fay@example.org", "mod@site.example"
EVIL = re.compile(r"evil|reply-to|bcc|admin", re.IGNORECASE)
# Texts that an attacker wants a mail program to decode: a header with a body and a link, a reserved
# name.
PAYLOADS = ["x\r\nReply-To: a@evil.example\r\n\r\nhttp://evil.example", "Admin", "evil.example"]


def _forms(payload: str) -> list[str]:
    """Return a payload in every RFC 2047 form that a mail program may decode."""
    q = "".join(f"={byte:02X}" for byte in payload.encode())
    b = b64encode(payload.encode()).decode()
    half = len(payload) // 2
    parts = [b64encode(each.encode()).decode() for each in (payload[:half], payload[half:])]
    wide = b64encode(payload.encode("utf-16")).decode()
    seven = payload.encode("utf-7").replace(b"\r", b"+AA0-").replace(b"\n", b"+AAo-")
    seven_q = "".join(f"={byte:02X}" for byte in seven)
    return [
        f"=?utf-8?q?{q}?=",
        f"=?UTF-8?Q?{q.lower()}?=",
        f"=?utf-8?b?{b}?=",
        f"=?UTF-8?B?{b}?=",
        f"=?us-ascii?q?{q}?=",
        f"=?iso-8859-1?Q?{q}?=",
        f"=?windows-1252?b?{b}?=",
        f"=?utf-16?b?{wide}?=",
        f"=?utf-7?q?{seven_q}?=",
        f"=?unknown-8bit?q?{q}?=",
        f"=?utf-8*en?q?{q}?=",
        f"=?utf-8*EN-gb?B?{b}?=",
        f"=?utf-8?b?{parts[0]}?= =?utf-8?b?{parts[1]}?=",
        f"=?utf-8?b?{parts[0]}?==?utf-8?b?{parts[1]}?=",
        f"x=?utf-8?q?{q}?=y",
        f'"=?utf-8?q?{q}?="',
        f"(=?utf-8?q?{q}?=)",
        f"=?utf-8?q?{q}",
        f"=?utf-8?q? {q} ?=",
        f"= ?utf-8?q?{q}? =",
        # The text is encoded twice, so decoding it once yields an encoded word.
        f"=?utf-8?b?{b64encode(f'=?utf-8?q?{q}?='.encode()).decode()}?=",
        # NFKC normalization turns these small and full-width characters into an encoded word.
        f"\uff1d\uff1futf-8\uff1fq\uff1f{q}\uff1f\uff1d",
        f"\ufe66\ufe56utf-8\ufe56q\ufe56{q.replace('=', chr(0xFE66))}\ufe56\ufe66",
        # Invisible characters separate the delimiters.
        f"=\u2060?utf-8?q?{q}?\u2060=",
    ]


FORMS = [*itertools.chain.from_iterable(map(_forms, PAYLOADS))]
SPLIT = [
    (form[:place], form[place:]) for form in _forms(PAYLOADS[2])[:4] for place in (1, 7, 11, -2)
]


@pytest.fixture
def busy_mailer(store: connection.Store, site: records.Site, box: Box) -> MailService:
    return MailService(store, box.settings(mails_per_day=1_000), box)


def _compat32(raw: bytes) -> tuple[list[str], str, list[str]]:
    """Parse with the standard library's oldest parser; return header names, subject and types."""
    found = email.message_from_bytes(raw)
    assert not found.defects
    subject = str(make_header(decode_header(found["Subject"])))
    kinds = [part.get_content_type() for part in found.walk()]
    return [name.lower() for name in found.keys()], subject, kinds  # noqa: SIM118 - keys() includes repeated names


def _assert_ours(raw: bytes, ours: list[str]) -> None:
    """Check that the mail has only our headers, a text part, an HTML part and harmless content."""
    raw.decode("ascii")
    names, subject, kinds = _compat32(raw)
    assert names == ours
    assert kinds == ["multipart/alternative", "text/plain", "text/html"]
    found = mail_reader.read(raw)
    assert found.names == ours
    assert [kind for kind, _ in found.parts] == ["text/plain", "text/html"]
    for text in (subject, found.value("Subject"), found.value("From")):
        assert "\n" not in text
        _assert_harmless(text)
    for _, text in found.parts:
        _assert_harmless(text)


def _assert_harmless(text: str) -> None:
    # Remove our own links, because their ids and tokens may contain any letters.
    without = re.sub(rf'{mail_server.PUBLIC}[^\s"<]*', "", text)
    assert not EVIL.search(unicodedata.normalize("NFKC", without)), text
    assert "://" not in without


@pytest.mark.slow
def test_no_encoded_word_becomes_a_header_a_body_a_link_or_a_name(
    busy_mailer: MailService,
) -> None:
    # Each comment has two different payloads: one as its name, one as its title.
    for raw in busy_mailer.mails_about([*map(Said, FORMS, FORMS[1:] + FORMS[:1])]):
        _assert_ours(raw, OURS)


@pytest.mark.slow
def test_an_encoded_word_split_over_two_fields_is_not_decoded(busy_mailer: MailService) -> None:
    for raw in busy_mailer.mails_about([Said(name, title) for name, title in SPLIT]):
        _assert_ours(raw, OURS)


def test_moderators_get_no_header_that_an_author_chose(busy_mailer: MailService) -> None:
    site_settings.change("demo", moderators=[MODERATOR])
    actor = records.Actor("cli", "Ada")
    policy_changes.set_policy("demo", actor, now=busy_mailer.now, policy=records.Policy.ALL)
    for raw in busy_mailer.mails_about([Said(form, form) for form in _forms(PAYLOADS[0])[::3]]):
        _assert_ours(raw, OURS)
    assert set(busy_mailer.box.recipients) == {MODERATOR}


# These names become reserved names when mail omits or rewrites some of their characters.
NEARLY = ["Admin\u3164", "\u115fAdmin", "Admin\uffa0"]


def test_no_guest_gets_a_reserved_name_through_characters_that_mail_omits(
    busy_mailer: MailService,
) -> None:
    client = apps.create_app(busy_mailer.settings, busy_mailer.store).test_client()
    for name in NEARLY:
        sent = {"name": name, "body": "hello"}
        answer = client.post("/api/v1/sites/demo/comments?thread=page", json=sent)
        assert (answer.status_code, answer.get_json()["code"]) == (400, "reserved-name")


LINKS = [
    "evil\u2024example", "evil\ufe52example", "evil\u0589example", "evil\uff0eexample",
    "evil\uff61example", "evil.\u0301example", "evi\u034fl\u2060.\u200dexample", "//evil",
    "//evil:8080/a", "\uff0f\uff0fevil", "http:evil", "\uff48ttp\ufe55evil", "\\\\evil\\share",
    "evil\uff20example", "mailto:evil", "evil.\U0001d41a\U0001d41b", "//[::1]/evil",
    "evil\U00010a50example", "xevil\u0338.example", "http\u2236//evil",
    "\U0001f4a9.example", "i\u2764.example", "i\u2764\ufe0f.example",
]  # fmt: skip


@pytest.mark.slow
def test_nothing_that_reads_as_a_link_is_left_in_any_form(busy_mailer: MailService) -> None:
    for raw in busy_mailer.mails_about([Said(link, link, link) for link in LINKS]):
        _assert_ours(raw, OURS)
        found = mail_reader.read(raw)
        assert found.value("Subject") == '[link] commented on "[link]"'
        assert "> [link]\r\n" in found.parts[0][1]


BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


@pytest.mark.slow
def test_no_text_reorders_the_text_around_it(busy_mailer: MailService) -> None:
    hostile = [Said(f"B{each}ob", f"A{each} page", f"hel{each}lo") for each in BIDI]
    for raw in busy_mailer.mails_about(hostile):
        found = mail_reader.read(raw)
        assert found.value("Subject") == 'Bob commented on "A page"'
        assert not any(each in text for each in BIDI for _, text in found.parts)


@given(st.text(), st.text(), st.text())
def test_any_written_text_is_read_as_it_was_written(name: str, title: str, text: str) -> None:
    made = sample_mail.made(name=name, title=title, text=text).raw
    _, subject, kinds = _compat32(made)
    found = mail_reader.read(made)
    assert found.names == OURS
    assert kinds == ["multipart/alternative", "text/plain", "text/html"]
    assert subject == found.value("Subject")
    for line in (plain_words.line(name), plain_words.line(title)):
        assert plain_words.line(line) == line
    assert plain_words.words(plain_words.words(text)) == plain_words.words(text)
    quoted = "\n".join(f"> {line}" for line in plain_words.words(text).strip().split("\n"))
    assert (
        found.parts[0][1]
        .replace("\r\n", "\n")
        .partition(" wrote:\n\n")[2]
        .startswith(f"{quoted}\n")
    )
    assert all(len(line) <= 78 for line in made.split(b"\r\n"))


def test_a_mail_that_cannot_be_composed_stops_no_other(busy_mailer: MailService) -> None:
    """The store may contain addresses that older releases accepted and this release refuses."""
    for email_ in ("ann@example.org", "ann@x..example", "zoe@example.org"):
        busy_mailer.subscribe(email_)
    busy_mailer.say("news")
    busy_mailer.deliver()
    assert busy_mailer.told("news") == ["ann@example.org", "zoe@example.org"]
    assert counter_oracle.events() == []

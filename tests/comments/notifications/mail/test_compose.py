"""Mail messages have a stable format and neutralize hostile content."""

import email
import re
from datetime import UTC, datetime
from email import policy
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.notifications.mail import compose, plain_words
from tests.support.outside.sample_mail import PLACE, SENDER, UNSUBSCRIBE, made, notice, read

# Message ids must stay stable, because mailboxes identify messages by them.
GOLDEN = """\
From: garden <comments@service.example>
To: ann@example.org
Subject: =?utf-8?b?QsO2YiBjb21tZW50ZWQgb24gIkEgcGFnZSI=?=
Date: Fri, 02 Jan 2026 03:04:05 +0000
Message-ID: <DIGEST@service.example>
Auto-Submitted: auto-generated
X-Auto-Response-Suppress: All
In-Reply-To: <e62bdce6a090ee20af17a39141d6db34@service.example>
References: <e62bdce6a090ee20af17a39141d6db34@service.example>
List-Unsubscribe: <https://service.example/unsubscribe/token>
List-Unsubscribe-Post: List-Unsubscribe=One-Click
MIME-Version: 1.0
Content-Type: multipart/alternative;
 boundary="=-DIGEST"
"""


class Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag: Any, attrs: Any) -> None:
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in {"href", "src"}]


def test_the_format_of_a_message_is_stable() -> None:
    found = made().raw.decode().replace("\r\n", "\n")
    head, _, _ = found.partition("\n\n")
    digest = re.search(r"<(\w{32})@", head)[1]
    assert digest == "34b162163a92dda2cdd7104bf9a84bf5"
    assert f"{head}\n" == GOLDEN.replace("DIGEST", digest)
    raw = made().raw.replace(b"\r\n", b"\n")
    plain, rich = email.message_from_bytes(raw, policy=policy.default).iter_parts()
    assert (plain.get_content_type(), rich.get_content_type()) == ("text/plain", "text/html")
    assert plain.get_content() == (
        "Böb wrote:\n\n> Hello\n> <b>you</b>\n\n"
        f"View on site: {PLACE}\n\nUnsubscribe: {UNSUBSCRIBE}\n"
    )
    assert rich.get_content() == (
        '<!doctype html>\n<html lang="en" dir="ltr">\n<div dir="ltr">\n<p>Böb wrote:</p>\n'
        '<blockquote dir="auto">Hello<br>\n&lt;b&gt;you&lt;/b&gt;</blockquote>\n'
        f'<p><a href="{PLACE.replace("&", "&amp;")}">View on site</a></p>\n'
        f'<p><a href="{UNSUBSCRIBE}">Unsubscribe</a></p>\n</div>\n</html>\n'
    )


def test_a_second_message_of_an_event_has_the_same_message_id() -> None:
    later = compose.message(notice(text="edited"), SENDER, now=datetime(2026, 2, 1, tzinfo=UTC)).raw
    again = email.message_from_bytes(later)["Message-ID"]
    assert again == read()["Message-ID"]
    others = [read(event="x.1"), read(recipient="bob@example.org")]
    assert len({again, *(each["Message-ID"] for each in others)}) == 3


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
def test_nothing_that_mail_programs_turn_into_a_link_is_left(field: str, text: str) -> None:
    found = read(**{field: text})
    told = found["Subject"] + "".join(part.get_content() for part in found.iter_parts())
    assert "[link]" in told
    left = told.replace(PLACE, "").replace(UNSUBSCRIBE, "").replace(PLACE.replace("&", "&amp;"), "")
    assert not re.search(r"evil\S?\.|\.com|\.example|://|1\.2", left)


@pytest.mark.slow
def test_a_long_word_is_checked_in_linear_time() -> None:
    """A quadratic check of these words would take minutes."""
    assert plain_words.words("a" * 200_000) == "a" * 200_000
    assert plain_words.words("1." * 100_000 + "x") == "[link]"


# Each text contains several addresses, contains none, or means different addresses to people and to
# servers.
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
    "-a@x.example",
    "-@x.example",
    "--help@x.example",
    "|a@x.example",
    "|/bin/sh@x.example",
    "a@-x.example",
    "a@x-.example",
    f"a@{'x' * 64}.example",
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
def test_any_written_text_stays_plain_text(name: Any, title: Any, text: Any) -> None:
    raw = made(name=name, title=title, text=text).raw
    found = email.message_from_bytes(raw, policy=policy.default)
    assert found.keys() == read().keys()
    assert found["To"] == "ann@example.org"
    assert "\n" not in found["Subject"]
    plain, rich = found.iter_parts()
    assert not {*found.defects, *plain.defects, *rich.defects}
    shown = Links(rich.get_content())
    assert shown.links == [PLACE, UNSUBSCRIBE]
    assert shown.tags <= {"html", "div", "p", "a", "blockquote", "br"}
    assert plain.get_content().count("://") == 2
    assert max(map(len, raw.split(b"\r\n"))) <= 998


@pytest.mark.parametrize("address", ODD)
def test_only_one_plain_address_is_accepted_as_recipient(address: str) -> None:
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
def test_a_plain_address_is_accepted(address: str) -> None:
    assert read(recipient=address)["To"] == address


@pytest.mark.parametrize(
    "url", ["", "javascript:alert(1)", "https://a b", "https://a\r\nX: y", "//a", 'https://a"']
)
@pytest.mark.parametrize("field", ["place", "unsubscribe"])
def test_our_links_must_be_web_addresses(field: str, url: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        made(**{field: url})
    assert caught.value.field == field

"""Atom documents have stable ids, escaped text, and only characters that XML allows."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from typing import Any

import feedparser
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain import presentation, records
from comments.reading import feeds
from comments.web.embedding import atom
from tests.support.html import atom_rules

NAME = records.ThreadName("demo", "page")
ID = "aaaqeayeaudaocajbifqydiob4"
WHEN = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
COMMENT = presentation.PublicComment(
    id=ID,
    slug="s",
    parent=None,
    reply_to=None,
    level=0,
    html="<p>a &amp; b ]]&gt;</p>",
    author=presentation.PublicAuthor("Ann", "https://ann.example/"),
    created=WHEN,
    edited=None,
    score=0,
    status=presentation.Shown.APPROVED,
    revision=1,
)
ENTRY = feeds.FeedEntry(COMMENT, NAME, "A <title>", "https://site.example/a")
HEAD = atom.FeedMetadata(
    id="urn:uuid:00000000-0000-0000-0000-000000000000",
    title="Comments",
    itself="https://service.example/feeds/demo/thread?thread=page",
    page="https://site.example/a",
    place=lambda entry: f"https://site.example/a#comment-{entry.comment.id}",
)
# Feed readers identify entries by these ids and compare these times, so a change would show all
# entries as new.
GOLDEN = """<?xml version='1.0' encoding='utf-8'?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:thr="http://purl.org/syndication/thread/1.0" \
xml:lang="en">\
<id>urn:uuid:00000000-0000-0000-0000-000000000000</id><title>Comments</title>\
<updated>2026-01-02T03:04:05Z</updated>\
<link rel="self" type="application/atom+xml" \
href="https://service.example/feeds/demo/thread?thread=page" />\
<link rel="alternate" type="text/html" href="https://site.example/a" />\
<entry><id>urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f</id>\
<title>Ann on A &lt;title&gt;</title><published>2026-01-02T03:04:05Z</published>\
<updated>2026-01-03T00:00:00Z</updated>\
<author><name>Ann</name><uri>https://ann.example/</uri></author>\
<link rel="alternate" type="text/html" \
href="https://site.example/a#comment-aaaqeayeaudaocajbifqydiob4" />\
<thr:in-reply-to ref="urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f" />\
<content type="html" xml:lang="">\
&lt;p&gt;a &amp;amp; b ]]&amp;gt;&lt;/p&gt;</content></entry></feed>"""


def made(entry: feeds.FeedEntry = ENTRY, *, title: str = "Comments") -> bytes:
    head = atom.FeedMetadata(HEAD.id, title, HEAD.itself, HEAD.page, HEAD.place)
    return atom.document(head, feeds.Feed((entry,), WHEN))


def test_the_format_of_a_feed_is_stable() -> None:
    answer = msgspec.structs.replace(COMMENT, parent=ID, edited=datetime(2026, 1, 3, tzinfo=UTC))
    found = made(msgspec.structs.replace(ENTRY, comment=answer))
    assert found.decode() == GOLDEN
    assert atom_rules.problems(found) == []


def test_the_id_of_a_feed_is_stable() -> None:
    secret = "a secret of the tests"
    assert atom.feed_id(secret, "demo") == "urn:uuid:33e4e64c-931e-7503-ce12-ce012d9b1582"
    assert atom.feed_id(secret, "demo", "page") == "urn:uuid:318227df-8252-e4e1-d12a-dc7b78238932"


def test_feeds_of_other_threads_sites_and_installations_have_other_ids() -> None:
    asked = [("a", "demo"), ("b", "demo"), ("a", "other"), ("a", "demo", "x"), ("a", "demo", "y")]
    assert len({atom.feed_id(*each) for each in asked}) == len(asked)


def test_a_feed_without_comments_is_valid() -> None:
    found = feedparser.parse(atom.document(HEAD, feeds.Feed((), None)))
    assert (found.bozo, found.entries) == (False, [])
    assert found.feed.updated == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "text",
    ["]]>", "<script>alert(1)</script>", "&lt;b&gt;", 'a"b', "a\u2028b", "\x00\x0b\ufffe\ud800"],
)
def test_no_text_ends_its_element(text: str) -> None:
    comment = msgspec.structs.replace(
        COMMENT, author=presentation.PublicAuthor(text, ""), html=text
    )
    entry = feeds.FeedEntry(comment, NAME, text, text)
    root = ET.fromstring(made(entry, title=text))  # noqa: S314 - our own XML
    shown = "\ufffd" * 4 if "\x00" in text else text
    atom_names = {"a": "http://www.w3.org/2005/Atom"}
    assert root.findtext("a:title", namespaces=atom_names) == shown
    assert root.findtext("a:entry/a:content", namespaces=atom_names) == shown
    assert root.findtext("a:entry/a:author/a:name", namespaces=atom_names) == shown
    assert len(list(root.iter())) == 15


@given(st.text(), st.text(), st.text())
def test_any_text_makes_a_valid_document(title: Any, name: Any, html: Any) -> None:
    comment = msgspec.structs.replace(
        COMMENT, author=presentation.PublicAuthor(name, name), html=html
    )
    found = feedparser.parse(made(feeds.FeedEntry(comment, NAME, title, title), title=title))
    assert found.bozo is False, found.get("bozo_exception")
    assert found.entries[0].id == "urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_exactly_the_characters_that_xml_cannot_contain_are_replaced() -> None:
    # XML 1.0, section 2.2
    ranges = ((0x20, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x10FFFF))
    allowed = {0x9, 0xA, 0xD}.union(*(range(first, last + 1) for first, last in ranges))
    every = range(0x110000)
    written = atom._writable("".join(map(chr, every)))
    assert [ord(each) for each in written] == [
        number if number in allowed else 0xFFFD for number in every
    ]

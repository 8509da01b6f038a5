"""The data browser shows stored data and displays hostile content only as text."""

import datetime as dt
import html
import io
import re
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest

from datastore_emulator import inprocess
from datastore_emulator.server import admin_port, http_server
from emulator.tests.support import service_calls

HOSTILE = "<script>alert(1)</script>\"'&\x00\u202e"


@pytest.fixture
def look(engine: inprocess.Engine) -> Callable[..., Any]:
    answers = admin_port.AdminPort(engine, lambda: None)

    def look(path: str, **query: str) -> str:
        parts = urllib.parse.urlsplit(html.unescape(path))
        given = dict(urllib.parse.parse_qsl(parts.query)) | query
        response = answers.answer(http_server.Request("GET", parts.path, given, "", io.BytesIO()))
        assert response.content_type.startswith("text/html")
        return response.content.decode()

    return look


def plain(page: str) -> str:
    """Return the text of a page without its tags."""
    return html.unescape(re.sub(r"<[^>]*>", "", page.partition("<body>")[2]))


def links(page: str, to: str) -> list[str]:
    return [html.unescape(each) for each in re.findall(rf'href="({to}[^"]*)"', page)]


def test_kinds_are_counted_by_partition(
    look: Callable[..., Any], near: service_calls.Service
) -> None:
    for number in range(3):
        near.put(near.key("T", number + 1), a=1, b=2)
    near.put(near.key("U", "x", namespace="n"), a=1)
    near.database = "d"
    near.put(near.key("T", 1))
    text = plain(look("/ui"))
    assert "test · default namespaceKindEntitiesT3" in text
    assert "test · namespace nKindEntitiesU1" in text
    assert "test · database d · default namespaceKindEntitiesT1" in text
    near.delete(near.key("T", 1))
    assert "database d" not in plain(look("/ui"))


def test_an_empty_store_is_reported(look: Callable[..., Any]) -> None:
    assert "No entities yet" in plain(look("/ui"))
    assert "No entities." in plain(look("/ui/kind", project="test", kind="T"))
    assert "None." in plain(look("/ui/indexes"))


def test_pages_show_all_entities_of_a_kind(
    look: Callable[..., Any], near: service_calls.Service
) -> None:
    wanted = {f"T {number + 1}" for number in range(120)}
    near.commit(*({"upsert": near.entity(near.key("T", number + 1))} for number in range(120)))
    shown = []
    turn = links(look("/ui"), "/ui/kind")
    while turn:
        page = look(turn[0])
        shown += re.findall(r"<bdi>(T \d+)</bdi>", page)
        turn = [each for each in links(page, "/ui/kind") if "after=" in each]
    assert (len(shown), set(shown)) == (120, wanted)


def test_an_entity_shows_every_property_and_its_index_entries(
    look: Callable[..., Any], near: service_calls.Service, unindexed: type[service_calls.Unindexed]
) -> None:
    near.put(
        near.key("A", "x", "T", 5),
        a=[3, 1], b=None, c=1.5, text=unindexed("long" * 100), blob=b"\x01\xff", point=(1.5, -2.0),
        inner={"x": True, "list": []}, when=dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
        ref=near.key("A", "x"),
    )  # fmt: skip
    page = look(links(look("/ui/kind", project="test", kind="T"), "/ui/entity")[0])
    text = plain(page)
    for shown in ("A x / T 5", "long" * 100, "string not indexed", "2 bytes 01 ff", "1.5, -2.0",
                  "2026-01-02T00:00:00Z", "T: c ↑, a ↑2(1.5, 1) (1.5, 3)", "T: ancestor, a ↓4",
                  "T: inner.x ↑1(true)", "bnullnull"):  # fmt: skip
        assert shown in text, shown
    missing = look(links(page, "/ui/entity")[0])
    assert "does not exist" in plain(missing)


def test_hostile_names_and_values_are_only_text(
    look: Callable[..., Any], near: service_calls.Service
) -> None:
    near.put(near.key(HOSTILE, HOSTILE), **{HOSTILE: HOSTILE})
    pages = [look("/ui"), look("/ui/indexes")]
    pages.append(look(links(pages[0], "/ui/kind")[0]))
    pages.append(look(links(pages[2], "/ui/entity")[0]))
    for page in pages:
        assert "<script" not in page
        assert "\x00" not in page
        assert "\u202e" not in page
        assert "<script>alert(1)</script>\"'&\\u0000\\u202e" in plain(page)


def test_indexes_show_their_sizes(look: Callable[..., Any], near: service_calls.Service) -> None:
    for number in range(3):
        near.put(near.key("T", number + 1), a=1, b=2)
    text = plain(look("/ui/indexes"))
    assert "T: a ↑, b ↑test · default namespace3" in text
    assert "T: key ↑test · default namespace3" in text
    assert "T: tag ↑, a ↑00" in text


@pytest.mark.parametrize(
    ("path", "status"),
    [("/ui/nothing", 404), ("/ui/entity", 400), ("/ui/entity?key=*", 400),
     ("/ui/entity?key=AAAA", 400), ("/ui/kind?after=%C3%A9", 400), ("/ui/kind?after=__8%3D", None)],
)  # fmt: skip
def test_invalid_urls_are_refused_or_show_nothing(
    look: Callable[..., Any], path: str, status: int | None
) -> None:
    if status is None:
        assert "No entities." in plain(look(path))
        return
    with pytest.raises(http_server.BadRequest) as caught:
        look(path)
    assert caught.value.status == status


def test_the_pages_refuse_posts(engine: inprocess.Engine) -> None:
    with pytest.raises(http_server.BadRequest, match="accepts only GET"):
        admin_port.AdminPort(engine, lambda: None).answer(
            http_server.Request("POST", "/ui", {}, "", io.BytesIO())
        )

"""Write exports of Flatthread by hand, without the code of the export."""

import hashlib
import json
from typing import Any

from comments.domain.records import Status, ThreadState
from tests.support.importing.sample_files import Expected, ExpectedThread, Sample, at

ROSES, TULIPS, EMPTY = "garden.example/roses", "tulips", "garden.example/empty"
HEADER = {
    "kind": "header",
    "format": "flatthread",
    "version": 1,
    "site": "garden",
    "time": "2026-01-02T00:00:00Z",
    "includes": [],
}


def id_of(letter: str) -> str:
    return letter * 26


def lines(*values: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in values)


def ended(content: bytes, **numbers: Any) -> bytes:
    """Return an export with the given lines, and an end line with their digest."""
    end = {"kind": "end", "sha256": hashlib.sha256(content).hexdigest()} | numbers
    return lines(HEADER) + content + lines(end)


def thread(thread_id: str = ROSES, **more: Any) -> dict[str, Any]:
    return {"kind": "thread", "id": thread_id, "url": f"https://{thread_id}"} | more


def comment(letter: str, number: int, parent: str = "", **more: Any) -> dict[str, Any]:
    """Return a comment of the thread about roses; `parent` is a letter."""
    above = {"parent": id_of(parent), "reply_to": id_of(parent)} if parent else {}
    return {
        "kind": "comment",
        "id": id_of(letter),
        "thread": ROSES,
        "number": number,
        "slug": "1",
        "status": "approved",
        "created": "2025-05-06T07:08:09.123456Z",
        "author": {"id": "g:ada", "name": "Ada"},
        "text": f"Text {letter}",
        **above,
    } | more


CREATED = at(2025, 5, 6, 7, 8, 9, 123_456)
SANE = Sample(
    data=ended(
        lines(
            {
                "kind": "settings",
                "origins": ["https://garden.example"],
                "scheme": {"digits": "abc", "width": 2, "levels": 4},
            },
            {"kind": "counter", "name": "liked", "where": ["up >= 1"], "by": ["author"]},
            thread(title="All <about> roses", state="closed", own=["title"], named_by=id_of("a")),
            comment(
                "a",
                0,
                author={"id": "g:ada", "name": "Ada", "website": "https://ada.example"},
                up=3,
                down=1,
                votes={"g:bob": 1, "a:eve": -1},
                pinned=True,
            ),
            comment(
                "b",
                1,
                "a",
                author={"id": "a:bob", "name": "Bob \u2013 the gardener", "staff": True},
                text="Not *so* late \u2013 yet",
                created="2027-01-01T00:00:00+02:00",
                edited="2027-01-03T00:00:00Z",
            ),
            comment("c", 7, "b", status="pending", rule="links", markup="html", text="<b>Hm</b>"),
            comment("d", 2, "a", status="retracted", author={}, text=""),
            comment(
                "e", 1, "d", author={"id": "i:eve", "name": "Eve"}, created="2024-01-01T00:00:00Z"
            ),
            comment("f", 5, status="spam", author={"id": "g:ada", "name": "Ada"}),
            thread(TULIPS, url=""),
            comment("g", 0, thread=TULIPS, status="shadowed", author={"name": "Eve"}),
        ),
        threads=2,
        comments=7,
    ),
    threads={
        ROSES: ExpectedThread("All <about> roses", ThreadState.CLOSED),
        TULIPS: ExpectedThread(),
    },
    comments=(
        Expected(
            thread=ROSES,
            id=id_of("a"),
            created=CREATED,
            name="Ada",
            website="https://ada.example",
            text="Text a",
            html="<p>Text a</p>\n",
            up=3,
            down=1,
            pinned=True,
        ),
        Expected(
            thread=ROSES,
            id=id_of("b"),
            parent=id_of("a"),
            created=at(2026, 12, 31, 22),
            edited=at(2027, 1, 3),
            name="Bob \u2013 the gardener",
            text="Not *so* late \u2013 yet",
            html="<p>Not <em>so</em> late \u2013 yet</p>\n",
        ),
        Expected(
            thread=ROSES,
            id=id_of("c"),
            parent=id_of("b"),
            status=Status.PENDING,
            created=CREATED,
            name="Ada",
            text="<b>Hm</b>",
            html="<b>Hm</b>",
        ),
        Expected(
            thread=ROSES,
            id=id_of("d"),
            parent=id_of("a"),
            status=Status.RETRACTED,
            created=CREATED,
        ),
        Expected(
            thread=ROSES,
            id=id_of("e"),
            parent=id_of("d"),
            created=at(2024, 1, 1),
            name="Eve",
            text="Text e",
            html="<p>Text e</p>\n",
        ),
        Expected(
            thread=ROSES,
            id=id_of("f"),
            status=Status.SPAM,
            created=CREATED,
            name="Ada",
            text="Text f",
            html="<p>Text f</p>\n",
        ),
        Expected(
            thread=TULIPS,
            id=id_of("g"),
            status=Status.SHADOWED,
            created=CREATED,
            name="Eve",
            person="nobody",
            text="Text g",
            html="<p>Text g</p>\n",
        ),
    ),
    says=(
        "The settings in the file were not applied. Add --settings to apply them.",
        "Declared counters: liked.",
    ),
)

_ONE = Expected(
    thread=ROSES,
    id=id_of("a"),
    created=CREATED,
    name="Ada",
    text="Text a",
    html="<p>Text a</p>\n",
)
_NUMBERED_ANEW = "Comments whose places do not fit the site's levels, renumbered: 2, lines 5, 6"
CROOKED = {
    "a thread without comments": Sample(
        data=ended(lines(thread(EMPTY, state="closed"), thread(), comment("a", 0))),
        threads={EMPTY: ExpectedThread(state=ThreadState.CLOSED), ROSES: ExpectedThread()},
        comments=(_ONE,),
    ),
    "unknown fields and lines, and an edited end": Sample(
        data=lines(
            HEADER | {"mood": "glad"},
            {"kind": "poem", "text": "x"},
            thread(color="red"),
            comment("a", 0, mood="glad"),
            {"kind": "end"},
        ),
        threads={ROSES: ExpectedThread()},
        comments=(_ONE,),
        says=(
            "Left out: lines of the unknown kind 'poem' (1)",
            "Left out: unknown fields 'color' of thread lines (1)",
            "Left out: unknown fields 'mood' of comment lines (1)",
        ),
    ),
    "orphans, a cycle, a repeated id, hostile HTML": Sample(
        data=lines(
            HEADER,
            thread(),
            comment("a", 0, html="<script>alert(1)</script>"),
            comment("a", 1),
            comment("b", 1, "z"),
            comment("c", 1, "d"),
            comment("d", 1, "c"),
            {"kind": "end"},
        ),
        threads={ROSES: ExpectedThread()},
        comments=(
            _ONE,
            *(
                Expected(
                    thread=ROSES,
                    id=id_of(letter),
                    parent=None if parent is None else id_of(parent),
                    created=CREATED,
                    name="Ada",
                    text=f"Text {letter}",
                    html=f"<p>Text {letter}</p>\n",
                )
                for letter, parent in (("b", None), ("c", None), ("d", "c"))
            ),
        ),
        says=(
            "Replies to comments that are not in the file, imported as roots: 1",
            "Cycles of replies, cut at the earliest comment: 1",
            "Duplicate ids, left out after the first: 1",
            _NUMBERED_ANEW,
        ),
    ),
}


def _refused(*values: dict[str, Any]) -> bytes:
    return lines(HEADER, thread(), *values, {"kind": "end"})


REFUSED = {
    "a later version": (
        lines(HEADER | {"version": 2}, {"kind": "end"}),
        "export:1: the export has version 2, but this release reads version 1. Upgrade",
    ),
    "no end": (lines(HEADER, thread()), "export:2: the file is cut off"),
    "no header": (lines(thread(), {"kind": "end"}), "export:1: the first line is not the header"),
    "two headers": (lines(HEADER, HEADER, {"kind": "end"}), "export:2: the file has a second"),
    "lines behind the end": (
        lines(HEADER, {"kind": "end"}, thread()),
        "comes after the end line 2",
    ),
    "lines are missing": (
        lines(HEADER, thread(), {"kind": "end", "comments": 1}),
        "export:3: comments: 1 here, but 0 in the file. If you edited the file",
    ),
    "a line was changed": (
        ended(lines(thread(), comment("a", 0))).replace(b"Text a", b"Text b"),
        "export:4: the lines above do not match the digest here. If you edited the file",
    ),
    "no JSON": (lines(HEADER) + b"{\n" + lines({"kind": "end"}), "export:2: invalid JSON"),
    "a wrong type": (_refused(comment("a", 0, up="3")), "export:3: comment: Expected `int`"),
    "an unknown status": (_refused(comment("a", 0, status="x")), "export:3: comment: Invalid enum"),
    "no thread": (_refused(comment("a", 0, thread="x")), "no line above describes the thread 'x'"),
    "an id": (_refused(comment("a", 0, id="../x")), "export:3: \"id\": '../x' is not a comment id"),
    "a number": (
        _refused(comment("a", -1)),
        "export:3: comment: Expected `int` >= 0 - at `$.number`",
    ),
    "an author": (
        _refused(comment("a", 0, author={"id": "g:a/b", "name": "x"})),
        "export:3: \"author\": 'g:a/b' is not an author id",
    ),
    "an own vote": (_refused(comment("a", 0, up=1, votes={"g:ada": 1})), 'export:3: "votes"'),
    "more votes than stated": (_refused(comment("a", 0, votes={"g:b": 1})), 'export:3: "up"'),
    "a vote that counts twice": (
        _refused(comment("a", 0, up=2, votes={"g:b": 2})),
        "at `$.votes[...]`",
    ),
    "a slug": (_refused(comment("a", 0, slug="1-0")), "at `$.slug`"),
    "an address": (lines(HEADER, thread(url="javascript:x"), {"kind": "end"}), 'export:2: "url"'),
    "a title": (lines(HEADER, thread(title="a\nb"), {"kind": "end"}), 'export:2: "title"'),
    "reasons": (
        _refused(comment("a", 0, reasons=[{"code": "no such", "params": {}}])),
        'export:3: "reasons": contains an unknown code',
    ),
    "an origin": (
        lines(
            HEADER,
            {
                "kind": "settings",
                "origins": ["x"],
                "scheme": {"digits": "abc", "width": 2, "levels": 4},
            },
            {"kind": "end"},
        ),
        "export:2: ",
    ),
    "a counter": (
        lines(HEADER, {"kind": "counter", "name": "x", "where": ["y"]}, {"kind": "end"}),
        "export:2: ",
    ),
}

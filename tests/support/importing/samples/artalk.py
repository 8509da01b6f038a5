"""Write exports of Artalk."""

import json
from typing import Any

from comments.domain.records import Status, ThreadState
from tests.support.importing.sample_files import Expected, ExpectedThread, Sample, at

ROSES, TULIPS = "garden.example/roses", "garden.example/tulips"


def _file(*comments: dict[str, Any]) -> bytes:
    return json.dumps(comments, ensure_ascii=False).encode()


def _comment(number: int, text: str, nick: str, **more: Any) -> dict[str, Any]:
    """Return a comment of minute `number` on the page about roses."""
    return {
        "id": str(number),
        "rid": "0",
        "content": text,
        "ua": "",
        "ip": "192.0.2.1",
        "is_collapsed": "false",
        "is_pending": "false",
        "is_pinned": "false",
        "vote_up": "0",
        "vote_down": "0",
        "created_at": f"2022-03-04 18:{number:02}:00 +0800 CST",
        "updated_at": f"2022-03-04 19:{number:02}:00 +0800 CST",
        "nick": nick,
        "email": f"{nick.lower()}@garden.example",
        "link": "",
        "badge_name": "",
        "badge_color": "",
        "page_key": "https://garden.example/roses/",
        "page_title": "Roses &amp; thorns",
        "page_admin_only": "false",
        "site_name": "Garden",
        "site_urls": "https://garden.example",
    } | more


_TULIPS = {"page_key": "/tulips", "page_title": "", "page_admin_only": "true"}
SANE = Sample(
    data=_file(
        _comment(3, "Reply \u2013 before its *parent*", "Bob", rid="1", vote_up="2", vote_down="1"),
        _comment(1, "Two\nlines", "Ada", is_pinned="true", link="https://ada.example"),
        _comment(
            4, "To ![Bob](https://i.example/b.png)", "Ada L.", email="ADA@garden.example", rid="3"
        ),
        _comment(5, "Held", "Eve", is_pending="true", email=""),
        _comment(6, "Folded", "Bob", is_collapsed="true", is_verified="true"),
        _comment(7, "Sub-seconds", "Bob", created_at="2022-03-04 10:07:00.25 +0000 UTC"),
        _comment(
            8, "Tulips", "Ada", badge_name="Boss", badge_color="#f00", password="x", **_TULIPS
        ),
    ),
    addresses={"Ada": "ada@garden.example", "Bob": "bob@garden.example"},
    threads={
        ROSES: ExpectedThread("Roses & thorns"),
        TULIPS: ExpectedThread("", ThreadState.CLOSED),
    },
    comments=(
        Expected(
            thread=ROSES,
            id="1",
            created=at(2022, 3, 4, 10, 1),
            name="Ada",
            website="https://ada.example",
            text="<p>Two<br />\nlines</p>\n",
            html="<p>Two<br>\nlines</p>\n",
            pinned=True,
        ),
        Expected(
            thread=ROSES,
            id="3",
            parent="1",
            created=at(2022, 3, 4, 10, 3),
            name="Bob",
            text="Reply \u2013 before its *parent*",
            html="<p>Reply \u2013 before its <em>parent</em></p>\n",
            up=2,
            down=1,
        ),
        Expected(
            thread=ROSES,
            id="4",
            parent="3",
            created=at(2022, 3, 4, 10, 4),
            name="Ada L.",
            person="Ada",
            text="To ![Bob](https://i.example/b.png)",
            html='<p>To <a data-ft-image="" href="https://i.example/b.png" '
            'rel="nofollow ugc noopener">Bob</a></p>\n',
        ),
        Expected(
            thread=ROSES,
            id="5",
            status=Status.PENDING,
            created=at(2022, 3, 4, 10, 5),
            name="Eve",
            text="Held",
            html="<p>Held</p>\n",
        ),
        Expected(
            thread=ROSES,
            id="6",
            created=at(2022, 3, 4, 10, 6),
            name="Bob",
            text="Folded",
            html="<p>Folded</p>\n",
        ),
        Expected(
            thread=ROSES,
            id="7",
            created=at(2022, 3, 4, 10, 7, 0, 250_000),
            name="Bob",
            text="Sub-seconds",
            html="<p>Sub-seconds</p>\n",
        ),
        Expected(
            thread=TULIPS,
            id="8",
            created=at(2022, 3, 4, 10, 8),
            name="Ada",
            text="Tulips",
            html="<p>Tulips</p>\n",
        ),
    ),
    says=(
        "Left out: IP addresses (7)",
        "Left out: badges (1)",
        "Left out: colors of badges (1)",
        "Left out: marks of collapsed comments (1)",
        "Left out: marks of verified authors (1)",
        "Left out: passwords (1)",
        "Left out: times of the last change (7)",
    ),
)

CROOKED = {
    "orphan, cycle and repeated id": Sample(
        data=_file(
            _comment(1, "Orphan", "Bob", rid="99"),
            _comment(2, "Round", "Bob", rid="3"),
            _comment(3, "And round", "Bob", rid="2"),
            _comment(3, "Again", "Bob"),
        ),
        threads={ROSES: ExpectedThread("Roses & thorns")},
        comments=(
            Expected(
                thread=ROSES,
                id="1",
                created=at(2022, 3, 4, 10, 1),
                name="Bob",
                text="Orphan",
                html="<p>Orphan</p>\n",
            ),
            Expected(
                thread=ROSES,
                id="2",
                created=at(2022, 3, 4, 10, 2),
                name="Bob",
                text="Round",
                html="<p>Round</p>\n",
            ),
            Expected(
                thread=ROSES,
                id="3",
                parent="2",
                created=at(2022, 3, 4, 10, 3),
                name="Bob",
                text="And round",
                html="<p>And round</p>\n",
            ),
        ),
        says=(
            "Replies to comments that are not in the file, imported as roots: 1",
            "Cycles of replies, cut at the earliest comment: 1",
            "  comment 4: 3, first in comment 3",
        ),
    ),
    "written by a converter": Sample(
        data=_file(
            {
                "id": "a1",
                "content": "<p>Caf@</p>\n",
                "is_collapsed": False,
                "created_at": "2022-03-04T10:01:00.000Z",
                "nick": "Ada",
                "page_key": "/roses",
            },
            {
                "id": 2,
                "rid": "a1",
                "content": "Two",
                "vote_up": 3,
                "is_pending": None,
                "created_at": "2022-03-04 10:02:00",
                "nick": "Bob",
                "page_key": "/roses/",
                "mood": "glad",
            },
        ).replace(b"Caf@", b"Caf\xe9"),
        threads={ROSES: ExpectedThread()},
        comments=(
            Expected(
                thread=ROSES,
                id="a1",
                created=at(2022, 3, 4, 10, 1),
                name="Ada",
                text="<p>Caf\u00e9</p>\n",
                html="<p>Caf\u00e9</p>\n",
            ),
            Expected(
                thread=ROSES,
                id="2",
                parent="a1",
                created=at(2022, 3, 4, 10, 2),
                name="Bob",
                text="Two",
                html="<p>Two</p>\n",
                up=3,
            ),
        ),
        says=(
            "Corrected: bytes that are not UTF-8, read as Windows-1252 (1, comment 1)",
            "Corrected: times without a time zone, read as UTC (1, comment 2)",
            'Left out: values of "mood" (1)',
        ),
    ),
    "two sites, one with two slashes before its path": Sample(
        data=_file(
            _comment(1, "Mine", "Ada", page_key="/roses"),
            _comment(
                2,
                "Theirs",
                "Bob",
                page_key="//roses",
                page_title="Theirs",
                site_name="Meadow",
                site_urls="a meadow, https://meadow.example/x/",
            ),
        ),
        threads={
            ROSES: ExpectedThread("Roses & thorns"),
            "meadow.example//roses": ExpectedThread("Theirs"),
        },
        comments=(
            Expected(
                thread=ROSES,
                id="1",
                created=at(2022, 3, 4, 10, 1),
                name="Ada",
                text="Mine",
                html="<p>Mine</p>\n",
            ),
            Expected(
                thread="meadow.example//roses",
                id="2",
                created=at(2022, 3, 4, 10, 2),
                name="Bob",
                text="Theirs",
                html="<p>Theirs</p>\n",
            ),
        ),
        says=("  comment 2: meadow.example (1 thread)",),
    ),
}

REFUSED = {
    "no time": (
        _file(_comment(1, "x", "Ada", created_at="")),
        'comment 1: "created_at" is missing',
    ),
    "no id": (_file(_comment(1, "x", "Ada", id="")), 'comment 1: "id" is missing'),
    "no page": (_file(_comment(1, "x", "Ada", page_key="")), 'comment 1: "page_key" is missing'),
    "a path of one of two sites": (
        _file(
            _comment(1, "x", "Ada"),
            _comment(2, "x", "Ada", site_name="Meadow", site_urls="", page_key="/x"),
        ),
        "comment 2: the file has comments of several sites, but \"site_urls\" of the site 'Meadow'",
    ),
    "an object": (b'{"type": "x"}', "the file is not an Artalk export"),
}

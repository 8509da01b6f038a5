"""Write exports of Waline."""

import json
from typing import Any

from comments.domain.records import Status
from tests.support.importing.sample_files import Expected, ExpectedThread, Sample, at

ROSES, TULIPS = "garden.example/roses", "garden.example/tulips"


def _file(*comments: dict[str, Any], **tables: Any) -> bytes:
    data = {"Comment": list(comments)} | tables
    export = {"type": "waline", "version": 1, "time": 1, "tables": list(data), "data": data}
    return json.dumps(export, indent=1, ensure_ascii=False).encode()


def _comment(number: int, text: str, nick: str, **more: Any) -> dict[str, Any]:
    """Return a comment of minute `number` on the page about roses."""
    return {
        "objectId": f"c{number}",
        "url": "/roses/",
        "nick": nick,
        "mail": f"{nick.lower()}@garden.example",
        "link": "",
        "comment": text,
        "status": "approved",
        "insertedAt": f"2022-03-04T10:{number:02}:00.500Z",
        "createdAt": f"2022-03-04T11:{number:02}:00.000Z",
        "ip": "192.0.2.1",
    } | more


SANE = Sample(
    data=_file(
        _comment(3, "Reply \u2013 before its **parent**", "Bob", pid="c1", rid="c1", like=2),
        _comment(1, "Two\nlines", "Ada", sticky=1, link="ada.example", like=0),
        _comment(
            4, "<p>To <em>Bob</em></p>", "Ada L.", pid="c3", rid="c1", mail="ADA@garden.example"
        ),
        _comment(5, "Buy", "Eve", status="spam", mail="", user_id="u2"),
        _comment(6, "Held", "Eve 2", status="waiting", mail="", user_id="u2", ua="Mozilla/5.0"),
        _comment(7, 'Hm <img class="wl-emoji" src="https://e.example/a.png" alt="sad">', "Bob"),
        _comment(8, "Tulips", "Ada", url="/tulips", user_id="u1"),
        Counter=[{"objectId": "k1", "url": "/roses/", "time": 12}, {"objectId": "k2"}],
        Users=[{"objectId": "u1", "email": "ada@garden.example", "password": "$2a$08$x"}],
    ),
    addresses={"Ada": "ada@garden.example", "Bob": "bob@garden.example"},
    threads={ROSES: ExpectedThread(), TULIPS: ExpectedThread()},
    comments=(
        Expected(
            thread=ROSES,
            id="c1",
            created=at(2022, 3, 4, 10, 1, 0, 500_000),
            name="Ada",
            website="http://ada.example",
            text="<p>Two<br />\nlines</p>\n",
            html="<p>Two<br>\nlines</p>\n",
            pinned=True,
        ),
        Expected(
            thread=ROSES,
            id="c3",
            parent="c1",
            created=at(2022, 3, 4, 10, 3, 0, 500_000),
            name="Bob",
            text="Reply \u2013 before its **parent**",
            html="<p>Reply \u2013 before its <strong>parent</strong></p>\n",
            up=2,
        ),
        Expected(
            thread=ROSES,
            id="c4",
            parent="c3",
            created=at(2022, 3, 4, 10, 4, 0, 500_000),
            name="Ada L.",
            person="Ada",
            text="<p>To <em>Bob</em></p>",
            html="<p>To <em>Bob</em></p>",
        ),
        Expected(
            thread=ROSES,
            id="c5",
            status=Status.SPAM,
            created=at(2022, 3, 4, 10, 5, 0, 500_000),
            name="Eve",
            text="Buy",
            html="<p>Buy</p>\n",
        ),
        Expected(
            thread=ROSES,
            id="c6",
            status=Status.PENDING,
            created=at(2022, 3, 4, 10, 6, 0, 500_000),
            name="Eve 2",
            person="Eve",
            text="Held",
            html="<p>Held</p>\n",
        ),
        Expected(
            thread=ROSES,
            id="c7",
            created=at(2022, 3, 4, 10, 7, 0, 500_000),
            name="Bob",
            text='<p>Hm <img class="wl-emoji" src="https://e.example/a.png" alt="sad"></p>\n',
            html='<p>Hm <a href="https://e.example/a.png" data-ft-image="" '
            'rel="nofollow ugc noopener">sad</a></p>\n',
        ),
        Expected(
            thread=TULIPS,
            id="c8",
            created=at(2022, 3, 4, 10, 8, 0, 500_000),
            name="Ada",
            text="Tulips",
            html="<p>Tulips</p>\n",
        ),
    ),
    says=(
        "Comments with images, which became links: 1, comment 6",
        "Corrected: websites without http:// or https://, completed with http:// (1, comment 2)",
        "Left out: IP addresses (7)",
        "Left out: accounts with their passwords (1)",
        "Left out: counters of page views and reactions (2)",
        "Left out: user agents (1)",
    ),
)

CROOKED = {
    "orphan, cycle and repeated id": Sample(
        data=_file(
            _comment(1, "Orphan", "Bob", pid="c99"),
            _comment(2, "Round", "Bob", pid="c3"),
            _comment(3, "And round", "Bob", pid="c2"),
            _comment(3, "Again", "Bob"),
        ),
        threads={ROSES: ExpectedThread()},
        comments=(
            Expected(
                thread=ROSES,
                id="c1",
                created=at(2022, 3, 4, 10, 1, 0, 500_000),
                name="Bob",
                text="Orphan",
                html="<p>Orphan</p>\n",
            ),
            Expected(
                thread=ROSES,
                id="c2",
                created=at(2022, 3, 4, 10, 2, 0, 500_000),
                name="Bob",
                text="Round",
                html="<p>Round</p>\n",
            ),
            Expected(
                thread=ROSES,
                id="c3",
                parent="c2",
                created=at(2022, 3, 4, 10, 3, 0, 500_000),
                name="Bob",
                text="And round",
                html="<p>And round</p>\n",
            ),
        ),
        says=(
            "Replies to comments that are not in the file, imported as roots: 1",
            "Cycles of replies, cut at the earliest comment: 1",
            "  comment 4: c3, first in comment 3",
        ),
    ),
    "rows of an SQL database": Sample(
        data=_file(
            _comment(
                1,
                "One",
                "Ada",
                objectId=11,
                pid=None,
                rid=None,
                like=None,
                sticky=None,
                link=None,
                user_id=None,
                insertedAt="2022-03-04 10:01:00",
            ),
            _comment(2, "Two", "Bob", objectId=12, pid=11, rid=11, like="3", sticky="0"),
            Counter=None,
            Users=None,
        ),
        threads={ROSES: ExpectedThread()},
        comments=(
            Expected(
                thread=ROSES,
                id="11",
                created=at(2022, 3, 4, 10, 1),
                name="Ada",
                text="One",
                html="<p>One</p>\n",
            ),
            Expected(
                thread=ROSES,
                id="12",
                parent="11",
                created=at(2022, 3, 4, 10, 2, 0, 500_000),
                name="Bob",
                text="Two",
                html="<p>Two</p>\n",
                up=3,
            ),
        ),
        says=("Corrected: times without a time zone, read as UTC (1, comment 1)",),
    ),
    "an unknown state, an unknown field, Latin-1, numbers for times": Sample(
        data=_file(
            _comment(1, "Caf@", "Ada", status="new", insertedAt=1646388060, mood="glad"),
            _comment(2, "Two", "Bob", insertedAt="1646388120000", like=-1),
        ).replace(b"Caf@", b"Caf\xe9"),
        threads={ROSES: ExpectedThread()},
        comments=(
            Expected(
                thread=ROSES,
                id="c1",
                status=Status.PENDING,
                created=at(2022, 3, 4, 10, 1),
                name="Ada",
                text="Caf\u00e9",
                html="<p>Caf\u00e9</p>\n",
            ),
            Expected(
                thread=ROSES,
                id="c2",
                created=at(2022, 3, 4, 10, 2),
                name="Bob",
                text="Two",
                html="<p>Two</p>\n",
            ),
        ),
        says=(
            "Corrected: bytes that are not UTF-8, read as Windows-1252 (1, comment 1)",
            "Corrected: negative numbers of votes, read as 0 (1, comment 2)",
            "Corrected: times in seconds instead of milliseconds (1, comment 1)",
            "Corrected: unknown states, read as pending (1, comment 1)",
            'Left out: values of "mood" (1)',
        ),
    ),
}

REFUSED = {
    "no time": (
        _file(_comment(1, "x", "Ada", insertedAt=None, createdAt="")),
        'comment 1: "insertedAt" is missing',
    ),
    "no id": (_file(_comment(1, "x", "Ada", objectId=None)), 'comment 1: "objectId" is missing'),
    "no page": (_file(_comment(1, "x", "Ada", url="")), 'comment 1: "url" is missing'),
    "a vote that is no number": (
        _file(_comment(1, "x", "Ada"), _comment(2, "x", "Ada", like="many")),
        "comment 2: \"like\" is not a whole number: 'many'",
    ),
    "no comments": (b'{"type": "waline", "data": {}}', "the file is not a Waline export"),
    "a list": (b"[]", "the file is not a Waline export"),
}

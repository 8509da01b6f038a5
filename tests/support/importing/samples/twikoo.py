"""Write exports of Twikoo."""

import dataclasses
import json
from typing import Any

from comments.domain.records import Status
from tests.support.importing.sample_files import Expected, ExpectedThread, Sample, at

ROSES, TULIPS = "garden.example/roses", "garden.example/tulips"
_FIRST = 1646388000000  # Milliseconds; 10:00 on March 4, 2022


def _file(*comments: dict[str, Any]) -> bytes:
    return json.dumps(comments, ensure_ascii=False).encode()


def _comment(number: int, text: str, nick: str, **more: Any) -> dict[str, Any]:
    """Return a comment of minute `number` on the page about roses."""
    return {
        "_id": f"c{number}",
        "uid": f"uid of {nick}",
        "nick": nick,
        "mail": f"{nick.lower()}@garden.example",
        "mailMd5": "0",
        "link": "",
        "url": "/roses/",
        "href": "http://localhost:4000/roses/#c1",
        "comment": text,
        "pid": "",
        "rid": "",
        "isSpam": False,
        "created": _FIRST + number * 60_000,
        "updated": _FIRST + number * 60_000 + 1,
    } | more


_IMAGE = '<p><img alt=":sad:" src="https://e.example/a.png" class="tk-owo-emotion"></p>\n'
SANE = Sample(
    data=_file(
        _comment(3, "<p>Reply \u2013</p>\n", "Bob", pid="c1", rid="c1", like=["x", "y"]),
        _comment(1, "<p>First</p>", "Ada", top=True, link="ada.example", master=True),
        _comment(4, _IMAGE, "Ada L.", mail="ADA@garden.example", pid="c3", rid="c1"),
        _comment(5, "<p>Buy</p>", "Eve", mail="", isSpam=True),
        _comment(6, "<p>Me again</p>", "Eve 2", mail="", uid="uid of Eve", like=[]),
        _comment(7, "<p>Last</p>", "Bob", ip="192.0.2.1", avatar="https://a.example/b.png"),
        _comment(8, "<p>Tulips</p>", "Bob", url="/tulips"),
    ),
    addresses={"Ada": "ada@garden.example", "Bob": "bob@garden.example"},
    threads={ROSES: ExpectedThread(), TULIPS: ExpectedThread()},
    comments=(
        Expected(
            thread=ROSES,
            id="c1",
            created=at(2022, 3, 4, 10, 1),
            name="Ada",
            website="http://ada.example",
            text="<p>First</p>",
            html="<p>First</p>",
            pinned=True,
        ),
        Expected(
            thread=ROSES,
            id="c3",
            parent="c1",
            created=at(2022, 3, 4, 10, 3),
            name="Bob",
            text="<p>Reply \u2013</p>\n",
            html="<p>Reply \u2013</p>\n",
            up=2,
        ),
        Expected(
            thread=ROSES,
            id="c4",
            parent="c3",
            created=at(2022, 3, 4, 10, 4),
            name="Ada L.",
            person="Ada",
            text=_IMAGE,
            html='<p><a href="https://e.example/a.png" data-ft-image="" '
            'rel="nofollow ugc noopener">:sad:</a></p>\n',
        ),
        Expected(
            thread=ROSES,
            id="c5",
            status=Status.SPAM,
            created=at(2022, 3, 4, 10, 5),
            name="Eve",
            text="<p>Buy</p>",
            html="<p>Buy</p>",
        ),
        Expected(
            thread=ROSES,
            id="c6",
            created=at(2022, 3, 4, 10, 6),
            name="Eve 2",
            person="Eve",
            text="<p>Me again</p>",
            html="<p>Me again</p>",
        ),
        Expected(
            thread=ROSES,
            id="c7",
            created=at(2022, 3, 4, 10, 7),
            name="Bob",
            text="<p>Last</p>",
            html="<p>Last</p>",
        ),
        Expected(
            thread=TULIPS,
            id="c8",
            created=at(2022, 3, 4, 10, 8),
            name="Bob",
            text="<p>Tulips</p>",
            html="<p>Tulips</p>",
        ),
    ),
    says=(
        "Comments with images, which became links: 1, comment 3",
        "Left out: IP addresses (1)",
        "Left out: avatars (1)",
        "Left out: hashes of mail addresses (7)",
        "Left out: marks of the site's owner (1)",
    ),
)

_DATABASE = (
    _comment(1, "One", "Ada", _id={"$oid": "c1"}, isSpam="false", top="true", like='"[]"'),
    _comment(2, "Two", "Bob", pid=None, rid="c1", isSpam=0, like='["x", "x", "y"]', top=None),
    _comment(3, "Three", "Bob", pid="c99", created={"$numberLong": "1646388180000"}),
    _comment(
        4, "Round", "Bob", pid="c5", created="2022-03-04T10:04:00.000Z", url="", href="/tulips"
    ),
    _comment(5, "And round", "Bob", pid="c4", created=1646388300, url="/tulips"),
    _comment(5, "Again", "Bob"),
)
_STORED = Sample(
    data=b"",
    threads={ROSES: ExpectedThread(), TULIPS: ExpectedThread()},
    comments=(
        Expected(
            thread=ROSES,
            id="c1",
            created=at(2022, 3, 4, 10, 1),
            name="Ada",
            text="One",
            html="One",
            pinned=True,
        ),
        Expected(
            thread=ROSES,
            id="c2",
            parent="c1",
            created=at(2022, 3, 4, 10, 2),
            name="Bob",
            text="Two",
            html="Two",
            up=2,
        ),
        Expected(
            thread=ROSES,
            id="c3",
            created=at(2022, 3, 4, 10, 3),
            name="Bob",
            text="Three",
            html="Three",
        ),
        Expected(
            thread=TULIPS,
            id="c4",
            created=at(2022, 3, 4, 10, 4),
            name="Bob",
            text="Round",
            html="Round",
        ),
        Expected(
            thread=TULIPS,
            id="c5",
            parent="c4",
            created=at(2022, 3, 4, 10, 5),
            name="Bob",
            text="And round",
            html="And round",
        ),
    ),
    says=(
        "Corrected: times in seconds instead of milliseconds (1, comment 5)",
        "Replies to comments that are not in the file, imported as roots: 1",
        "Cycles of replies, cut at the earliest comment: 1",
        "  comment 6: c5, first in comment 5",
    ),
)

CROOKED = {
    "rows of a database": dataclasses.replace(_STORED, data=_file(*_DATABASE)),
    "the same on lines": dataclasses.replace(
        _STORED, data="\n".join(json.dumps(each) for each in _DATABASE).encode()
    ),
    "the same in a list of results": dataclasses.replace(
        _STORED, data=json.dumps({"results": _DATABASE}).encode()
    ),
    "the same in an answer of the API": dataclasses.replace(
        _STORED, data=json.dumps({"code": 0, "data": _DATABASE}, indent=2).encode()
    ),
    "Latin-1, a negative time, an unknown field": Sample(
        data=_file(_comment(1, "Caf@", "Ada", created=-1_000_000_000_000, mood="glad")).replace(
            b"Caf@", b"Caf\xe9"
        ),
        threads={ROSES: ExpectedThread()},
        comments=(
            Expected(
                thread=ROSES,
                id="c1",
                created=at(1938, 4, 24, 22, 13, 20),
                name="Ada",
                text="Caf\u00e9",
                html="Caf\u00e9",
            ),
        ),
        says=(
            "Corrected: bytes that are not UTF-8, read as Windows-1252 (1, comment 1)",
            'Left out: values of "mood" (1)',
        ),
    ),
}

REFUSED = {
    "no time": (_file(_comment(1, "x", "Ada", created=None)), 'comment 1: "created" is missing'),
    "no id": (_file(_comment(1, "x", "Ada", _id="")), 'comment 1: "_id" is missing'),
    "no page": (_file(_comment(1, "x", "Ada", url=None, href="")), 'comment 1: "href" is missing'),
    "votes that are no list": (
        _file(_comment(1, "x", "Ada"), _comment(2, "x", "Ada", like={"x": 1})),
        'comment 2: "like" is not a list',
    ),
    "votes in a broken text": (
        _file(_comment(1, "x", "Ada", like="[1")),
        "comment 1: \"like\" is not a list: '[1'",
    ),
    "an object": (b'{\n"type": "x"}', "is neither a JSON list nor lines of JSON"),
}

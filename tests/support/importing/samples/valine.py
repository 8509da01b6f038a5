"""Write exports of the database of Valine."""

import dataclasses
import json
from typing import Any

from comments.domain.records import Status
from tests.support.importing.sample_files import Expected, ExpectedThread, Sample, at

ROSES, TULIPS = "garden.example/roses", "garden.example/tulips"
_HEADER = '#filetype:JSON-streaming {"type":"Class","class":"Comment"}'


def _file(*comments: dict[str, Any]) -> bytes:
    lines = [json.dumps(each, ensure_ascii=False) for each in comments]
    return "\n".join([_HEADER, *lines, ""]).encode()


def _comment(number: int, text: str, nick: str, **more: Any) -> dict[str, Any]:
    """Return a comment of minute `number` on the page about roses."""
    return {
        "objectId": f"c{number}",
        "url": "/roses/",
        "nick": nick,
        "mail": f"{nick.lower()}@garden.example",
        "link": "",
        "comment": text,
        "ACL": {"*": {"read": True}},
        "insertedAt": {"__type": "Date", "iso": f"2022-03-04T10:{number:02}:00.500Z"},
        "createdAt": f"2022-03-04T11:{number:02}:00.000Z",
        "updatedAt": f"2022-03-04T12:{number:02}:00.000Z",
    } | more


_AT = '<p><a class="at" href="#c1">@Al</a> , yes</p>\n<pre><code>1\n\n    2</code></pre>'
SANE = Sample(
    data=_file(
        _comment(3, _AT, "Bob", pid="c1", rid="c1"),
        _comment(
            1,
            "<p>First \u2013</p>\n",
            "Al &amp; Bo",
            mail="al@garden.example",
            link="https://al.example/?a=1&amp;b=2",
        ),
        _comment(4, "<p>To Bob</p>", "Al", mail="AL@garden.example", pid="c3", rid="c1"),
        _comment(5, "<p>Buy</p>", "Eve", isSpam=True, ACL={"*": {"read": False}}),
        _comment(6, "<p>Held</p>", "Bob", ACL={"5f0": {"read": True}}),
        _comment(7, "Only **Markdown** :smile:", "Bob", ip="192.0.2.1", QQAvatar="x"),
        _comment(8, "<p>Tulips</p>", "Eve", url="/tulips"),
    ),
    addresses={"Al": "al@garden.example", "Bob": "bob@garden.example", "Eve": "eve@garden.example"},
    threads={ROSES: ExpectedThread(), TULIPS: ExpectedThread()},
    comments=(
        Expected(
            thread=ROSES,
            id="c1",
            created=at(2022, 3, 4, 10, 1, 0, 500_000),
            name="Al & Bo",
            person="Al",
            website="https://al.example/?a=1&b=2",
            text="<p>First \u2013</p>\n",
            html="<p>First \u2013</p>\n",
        ),
        Expected(
            thread=ROSES,
            id="c3",
            parent="c1",
            created=at(2022, 3, 4, 10, 3, 0, 500_000),
            name="Bob",
            text=_AT,
            html='<p>@Al , yes</p>\n<pre tabindex="0"><code>1\n\n    2</code></pre>',
        ),
        Expected(
            thread=ROSES,
            id="c4",
            parent="c3",
            created=at(2022, 3, 4, 10, 4, 0, 500_000),
            name="Al",
            text="<p>To Bob</p>",
            html="<p>To Bob</p>",
        ),
        Expected(
            thread=ROSES,
            id="c5",
            status=Status.SPAM,
            created=at(2022, 3, 4, 10, 5, 0, 500_000),
            name="Eve",
            text="<p>Buy</p>",
            html="<p>Buy</p>",
        ),
        Expected(
            thread=ROSES,
            id="c6",
            status=Status.PENDING,
            created=at(2022, 3, 4, 10, 6, 0, 500_000),
            name="Bob",
            text="<p>Held</p>",
            html="<p>Held</p>",
        ),
        Expected(
            thread=ROSES,
            id="c7",
            created=at(2022, 3, 4, 10, 7, 0, 500_000),
            name="Bob",
            text="Only **Markdown** :smile:",
            html="<p>Only <strong>Markdown</strong> :smile:</p>\n",
        ),
        Expected(
            thread=TULIPS,
            id="c8",
            created=at(2022, 3, 4, 10, 8, 0, 500_000),
            name="Eve",
            text="<p>Tulips</p>",
            html="<p>Tulips</p>",
        ),
    ),
    says=(
        "Left out: IP addresses (1)",
        "Left out: avatars (1)",
        "Left out: times of the last change (7)",
    ),
)

_ROUND = (
    _comment(1, "Orphan", "Bob", pid="c99", rid="c98"),
    _comment(2, "Round", "Bob", pid="c3"),
    _comment(3, "And round", "Bob", rid="c2"),
    _comment(3, "Again", "Bob"),
)
_AROUND = Sample(
    data=b"",
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
)

CROOKED = {
    "orphan, cycle and repeated id": dataclasses.replace(_AROUND, data=_file(*_ROUND)),
    "the same in a list of results": dataclasses.replace(
        _AROUND, data=json.dumps({"results": _ROUND}, indent=1).encode()
    ),
    "the same in a list": dataclasses.replace(_AROUND, data=json.dumps(_ROUND).encode()),
    "records of Waline, in Latin-1": Sample(
        data=_file(
            _comment(1, "Caf@", "Ada", status="waiting", like=1),
            _comment(2, "Two", "Ada", status="approved", like="4", sticky=True, user_id="u1"),
        ).replace(b"Caf@", b"Caf\xe9"),
        threads={ROSES: ExpectedThread()},
        comments=(
            Expected(
                thread=ROSES,
                id="c1",
                status=Status.PENDING,
                created=at(2022, 3, 4, 10, 1, 0, 500_000),
                name="Ada",
                text="Caf\u00e9",
                html="<p>Caf\u00e9</p>\n",
                up=1,
            ),
            Expected(
                thread=ROSES,
                id="c2",
                created=at(2022, 3, 4, 10, 2, 0, 500_000),
                name="Ada",
                text="Two",
                html="<p>Two</p>\n",
                up=4,
                pinned=True,
            ),
        ),
        says=("Corrected: bytes that are not UTF-8, read as Windows-1252 (1, comment 1)",),
    ),
}

REFUSED = {
    "no time": (
        _file(_comment(1, "x", "Ada", insertedAt=None, createdAt="")),
        'comment 1: "insertedAt" is missing',
    ),
    "no id": (_file(_comment(1, "x", "Ada", objectId=None)), 'comment 1: "objectId" is missing'),
    "accounts": (
        f'{_HEADER}\n{{"objectId": "u1", "username": "ada", "salt": "x"}}'.encode(),
        'comment 1: "url" is missing',
    ),
    "a line that is cut off": (
        _file(_comment(1, "x", "Ada"), _comment(2, "x", "Ada"))[:-9],
        ":3: invalid JSON",
    ),
    "an object": (b'{\n"type": "x"}', "is neither a JSON list nor lines of JSON"),
    "a text": (b"<html>", "is neither a JSON list nor lines of JSON"),
}

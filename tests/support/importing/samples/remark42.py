"""Write backups of remark42."""

import gzip
import json
from collections.abc import Mapping
from typing import Any

from comments.domain.records import Status, ThreadState
from comments.transfer.formats import remark42
from tests.support.importing.sample_files import Expected, ExpectedThread, Sample, at

ROSES, TULIPS = "garden.example/roses", "garden.example/tulips"
HEAD: dict[str, Any] = {"version": 1, "users": None, "posts": None}
ADA = {"name": "Ada &amp; co", "id": "github_1", "picture": "", "ip": "0a", "admin": True}
BOB = {"name": "Bob", "id": "anonymous_2", "picture": "https://x.example/b.image", "admin": False}


def line(number: int, text: str, orig: str = "", **more: Any) -> dict[str, Any]:
    """Return a comment of minute `number`, whose author is Bob."""
    found = {
        "id": f"c{number}",
        "pid": "",
        "text": text,
        "orig": orig,
        "user": BOB,
        "locator": {"site": "remark", "url": "https://garden.example/roses/"},
        "score": 0,
        "vote": 0,
        "time": f"2022-03-04T10:{number:02}:00.123456789Z",
    }
    return found | more


def file(*lines: Mapping[str, Any], head: Mapping[str, Any] = HEAD) -> bytes:
    written = (json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in lines)
    return "\n".join([json.dumps(head, separators=(",", ":")), *written, ""]).encode()


def _on(url: str, site: str = "remark") -> dict[str, Any]:
    return {"locator": {"site": site, "url": url}}


def _at(number: int) -> Any:
    # Times are stored in microseconds.
    return at(2022, 3, 4, 10, number, 0, 123_456)


_TULIPS = _on("https://garden.example/tulips")
_LINES = (
    line(
        1,
        "<p>First \u2013 see <em>this</em>.</p>\n",
        "First \u2013 see *this*.",
        user=ADA,
        score=1,
        votes={"github_3": True, "github_4": True, "github_5": False},
        voted_ips={"0b": {"Timestamp": "2022-03-04T11:00:00Z", "Value": True}},
        controversy=1.5,
        pin=True,
        title="Roses &amp; thorns",
        edit={"time": "2022-03-04T10:01:30Z", "summary": "typo"},
    ),
    line(2, "<p>A reply<br/>\nin «two» lines.</p>\n", 'A reply\nin "two" lines.', pid="c1"),
    line(3, "", delete=True, pid="c1", user=ADA | {"name": "deleted", "id": "deleted"}),
    line(4, "<p>To what is <b>gone</b>.</p>\n", "To what is <b>gone</b>.", pid="c3"),
    line(5, "<p>Buy.</p>\n", "Buy.", user=BOB | {"name": "Eve", "id": "e", "block": True}),
    line(6, "<p>From <i>Disqus</i>.</p>", imported=True, **_TULIPS),
    line(
        7,
        "<p>Yes.</p>\n",
        "Yes.",
        pid="c6",
        user=ADA | {"name": "Ada L."},
        score=-2,
        title="Tulips",
        **_TULIPS,
    ),
)
_HEAD = {
    "version": 1,
    "users": [
        {
            "id": "e",
            "blocked": {"status": True, "until": "2122-03-04T00:00:00Z"},
            "verified": False,
            "details": {"user_id": "e", "email": "eve@garden.example"},
        },
        {
            "id": "github_1",
            "blocked": {"status": False, "until": "0001-01-01T00:00:00Z"},
            "verified": True,
            "details": {"user_id": ""},
        },
    ],
    "posts": [{"url": "https://garden.example/tulips", "read_only": True}],
}


def _short(number: int, text: str, html: str = "", thread: str = ROSES, **more: Any) -> Expected:
    """Return an expected comment of Bob."""
    return Expected(
        thread=thread,
        id=f"c{number}",
        created=_at(number),
        name=more.pop("name", "Bob"),
        text=text,
        html=html or f"<p>{text}</p>\n",
        **more,
    )


SANE = Sample(
    data=file(*_LINES, head=_HEAD),
    threads={
        ROSES: ExpectedThread("Roses & thorns"),
        TULIPS: ExpectedThread("Tulips", ThreadState.CLOSED),
    },
    comments=(
        _short(
            1,
            "First \u2013 see *this*.",
            "<p>First \u2013 see <em>this</em>.</p>\n",
            name="Ada & co",
            edited=at(2022, 3, 4, 10, 1, 30),
            up=2,
            down=1,
            pinned=True,
        ),
        _short(
            2,
            "<p>A reply<br />\nin &quot;two&quot; lines.</p>\n",
            '<p>A reply<br>\nin "two" lines.</p>\n',
            parent="c1",
        ),
        Expected(
            thread=ROSES,
            id="c3",
            parent="c1",
            status=Status.RETRACTED,
            created=_at(3),
        ),
        _short(
            4,
            "<p>To what is <b>gone</b>.</p>\n",
            "<p>To what is <b>gone</b>.</p>\n",
            parent="c3",
        ),
        _short(5, "Buy.", name="Eve"),
        _short(6, "<p>From <i>Disqus</i>.</p>", "<p>From <i>Disqus</i>.</p>", TULIPS),
        _short(7, "Yes.", thread=TULIPS, name="Ada L.", person="Ada & co", parent="c6", down=2),
    ),
    says=(
        "Corrected: scores without votes, read as votes up or down (1, line 8)",
        "Left out: blocked users (1)",
        "Left out: hashes of IP addresses (3)",
        "Left out: hashes of the IP addresses of voters (1)",
        "Left out: lists of voters (the numbers of votes are kept) (1)",
        "Left out: mail addresses of users (1)",
        "Left out: marks of administrators (3)",
        "Left out: marks of blocked users (1)",
        "Left out: marks of comments that remark42 had imported (1)",
        "Left out: verified users (1)",
        "Left out: pictures of authors (4)",
        "Left out: summaries of edits (1)",
    ),
)

CROOKED = {
    "packed": Sample(
        data=gzip.compress(SANE.data, mtime=0), comments=SANE.comments, threads=SANE.threads
    ),
    "several sites, repeated ids, orphans and scores": Sample(
        data=b"\xef\xbb\xbf"
        + file(
            line(1, "", "One.", score=5, votes={"a": True}),
            line(2, "", "Two.", pid="gone", **_on("https://garden.example/roses/", "other")),
            line(1, "", "Again."),
            line(3, "<p>3 &lt; 4</p>", "3 &lt; 4"),
            line(4, "", "Of tulips.", pid="c1", mood="glad", **_TULIPS),
            {"id": "c5", "user": BOB, "time": "2022-03-04T10:05:00.123456", **_TULIPS},
            head={"version": 0},
        ).replace(b"}\n", b"}\r\n\r\n"),
        threads={ROSES: ExpectedThread(), TULIPS: ExpectedThread()},
        comments=(
            _short(1, "One.", up=1),
            _short(2, "Two."),
            _short(3, "<p>3 &lt; 4</p>", "<p>3 &lt; 4</p>"),
            _short(4, "Of tulips.", thread=TULIPS),
            Expected(thread=TULIPS, id="c5", created=_at(5), name="Bob"),
        ),
        says=(
            "Pages merged into one thread: 1",
            "  line 7: c1, first in line 3",
            "  line 5: c2 replies to gone",
            "  line 11: c4 replies to c1",
            "Comments without text: 1, line 13",
            f"Corrected: {remark42.OTHER_SITE} (1, line 5)",
            "Corrected: scores that differ from the votes, replaced by the votes (1, line 3)",
            "Corrected: times without a time zone, read as UTC (1, line 13)",
            'Left out: values of "mood" (1)',
        ),
    ),
}

REFUSED = {
    "a version": (
        file(head=HEAD | {"version": 2}),
        ":1: the version is '2', but only versions 0 and 1 of remark42's backups are known",
    ),
    "no first line": (file(*_LINES).split(b"\n", 1)[1], ":1: the file is not a backup of remark42"),
    "nothing": (b"", ":1: the file is not a backup of remark42"),
    "a cut off line": (SANE.data[:-20], ":8: invalid JSON: "),
    "a cut off packed file": (
        gzip.compress(SANE.data, mtime=0)[:-20],
        "the compressed file is damaged or incomplete",
    ),
    "no id": (file(line(1, "x", id="")), ':2: "id" is missing'),
    "no time": (file(line(1, "x"), line(2, "x", time=None)), ':3: "time" is missing'),
    "a score": (file(line(1, "x", score=1.5)), ":2: \"score\" is not a number of votes: '1.5'"),
    "a large score": (file(line(1, "x", score=10**12)), ':2: "score" is not a number of votes'),
    "a vote": (file(line(1, "x", votes={"u": "up"})), ":2: \"u\" is not true or false: 'up'"),
    "a list of users": (
        file(head=HEAD | {"users": [1]}),
        ":1: \"users\" is not a list of JSON objects: '[1]'",
    ),
}

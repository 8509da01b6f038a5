"""Write exports of Comentario 3."""

import gzip
import json

from comments.domain.records import Status, ThreadState
from tests.support.importing.sample_files import Expected, ExpectedThread, Sample, at

BEANS, PEAS = "garden.example/beans", "garden.example/peas"
ZEROS = "00000000-0000-0000-0000-000000000000"
NEVER = "0001-01-01T00:00:00.000Z"


def _id(kind: str, number: int) -> str:
    return f"{kind * 8}-0000-4000-8000-{number:012}"


ADA, BOB = _id("a", 1), _id("a", 2)


def _file(
    pages: list[dict[str, object]],
    comments: list[dict[str, object]],
    commenters: list[dict[str, object]],
) -> bytes:
    content = {"version": 3, "pages": pages, "comments": comments, "commenters": commenters}
    return json.dumps(content, ensure_ascii=False, indent=1).encode()


def _page(number: int, path: str, **more: object) -> dict[str, object]:
    return {
        "id": _id("b", number),
        "domainId": _id("d", 1),
        "path": path,
        "createdTime": "2023-01-01T00:00:00.000Z",
    } | more


def _comment(number: int, text: str, author: str = "", **more: object) -> dict[str, object]:
    """Return an approved comment of minute `number` on the page on beans."""
    return (
        {
            "id": _id("c", number),
            "pageId": _id("b", 1),
            "url": f"https://garden.example/beans/#comentario-{_id('c', number)}",
            "markdown": text,
            "html": f"<p>{text}</p>",
            "isApproved": True,
            "createdTime": f"2023-04-05T06:{number:02}:00.000Z",
            "deletedTime": NEVER,
            "editedTime": NEVER,
            "moderatedTime": NEVER,
        }
        | ({"userCreated": author} if author else {})
        | more
    )


def _commenter(key: str, name: str, **more: object) -> dict[str, object]:
    return {
        "id": key,
        "name": name,
        "email": f"{name.split(maxsplit=1)[0].lower()}@mail.example",
        "createdTime": "2023-01-01T00:00:00.000Z",
        "colourIndex": 7,
        "isCommenter": True,
    } | more


SANE = Sample(
    data=_file(
        [
            _page(1, "/beans/", title="Beans", isReadonly=True, countComments=5, countViews=90),
            _page(2, "/peas"),
        ],
        [
            _comment(2, "A reply.", BOB, parentId=_id("c", 1), score=-2),
            _comment(
                1,
                "First \u2013 *hello*.",
                ADA,
                score=3,
                isSticky=True,
                editedTime="2023-04-06T00:00:00.000Z",
                userEdited=ADA,
                authorIp="192.0.2.7",
                authorCountry="NL",
            ),
            _comment(3, "Below.", ZEROS, parentId=_id("c", 2), authorName="Passer-by"),
            _comment(4, "Held.", BOB, isApproved=False, isPending=True, pendingReason="Links"),
            _comment(5, "No.", BOB, isApproved=False, userModerated=ADA),
            _comment(6, "", BOB, isDeleted=True, userDeleted=BOB, parentId=_id("c", 1)),
            _comment(7, "On peas.", ADA, pageId=_id("b", 2), url=None),
        ],
        [
            _commenter(ADA, "Ada L.", websiteUrl="https://ada.example", isModerator=True),
            _commenter(BOB, "Bob", hasAvatar=True, federatedIdP="github"),
        ],
    ),
    addresses={"Ada L.": "ada@mail.example", "Bob": "bob@mail.example"},
    threads={BEANS: ExpectedThread("Beans", ThreadState.CLOSED), PEAS: ExpectedThread()},
    comments=(
        Expected(
            thread=BEANS,
            id=_id("c", 1),
            created=at(2023, 4, 5, 6, 1),
            name="Ada L.",
            website="https://ada.example",
            text="First \u2013 *hello*.",
            html="<p>First \u2013 <em>hello</em>.</p>\n",
            edited=at(2023, 4, 6),
            up=3,
            pinned=True,
        ),
        Expected(
            thread=BEANS,
            id=_id("c", 2),
            parent=_id("c", 1),
            created=at(2023, 4, 5, 6, 2),
            name="Bob",
            text="A reply.",
            html="<p>A reply.</p>\n",
            down=2,
        ),
        Expected(
            thread=BEANS,
            id=_id("c", 3),
            parent=_id("c", 2),
            created=at(2023, 4, 5, 6, 3),
            name="Passer-by",
            text="Below.",
            html="<p>Below.</p>\n",
        ),
        Expected(
            thread=BEANS,
            id=_id("c", 6),
            parent=_id("c", 1),
            status=Status.RETRACTED,
            created=at(2023, 4, 5, 6, 6),
        ),
        Expected(
            thread=BEANS,
            id=_id("c", 4),
            status=Status.PENDING,
            created=at(2023, 4, 5, 6, 4),
            name="Bob",
            text="Held.",
            html="<p>Held.</p>\n",
        ),
        Expected(
            thread=BEANS,
            id=_id("c", 5),
            status=Status.REJECTED,
            created=at(2023, 4, 5, 6, 5),
            name="Bob",
            text="No.",
            html="<p>No.</p>\n",
        ),
        Expected(
            thread=PEAS,
            id=_id("c", 7),
            created=at(2023, 4, 5, 6, 7),
            name="Ada L.",
            website="https://ada.example",
            text="On peas.",
            html="<p>On peas.</p>\n",
        ),
    ),
    says=(
        "Left out: IP addresses of authors (1)",
        "Left out: countries of authors (1)",
        "Left out: dates when authors signed up (2)",
        "Left out: names of editors (1)",
        "Left out: names of moderators (1)",
        "Left out: names of people who deleted a comment (1)",
        "Left out: numbers of page views (1)",
        "Left out: pictures of authors (1)",
        "Left out: reasons for holding comments (1)",
        "Left out: roles of moderators (1)",
        "Left out: sign-in methods of authors (1)",
    ),
)


def _guest(number: int, text: str, **more: object) -> Expected:
    """Return a stored comment of a guest on the page on beans."""
    values = {
        "thread": BEANS,
        "id": _id("c", number),
        "created": at(2023, 4, 5, 6, number),
        "name": "Guest",
        "text": text,
        "html": f"<p>{text}</p>\n",
    }
    return Expected(**(values | more))  # type: ignore[arg-type]


CROOKED = {
    "orphans, a cycle, a repeated id, and pages and commenters that are missing": Sample(
        data=gzip.compress(
            _file(
                [],
                [
                    _comment(1, "Orphan.", parentId=_id("c", 9), createdTime="2023-04-05 06:01"),
                    _comment(2, "One.", parentId=_id("c", 3), createdTime=1680674520),
                    _comment(3, "Two.", parentId=_id("c", 2)),
                    _comment(1, "Again."),
                    _comment(4, "Who?", BOB, authorName="Bob"),
                    _comment(5, "", html="<b>Old</b>", parentId=ZEROS, mood="fine"),
                    _comment(6, "Spam.", isSpam=True),
                    _comment(7, "Lost.", pageId=_id("b", 9), url=""),
                ],
                [],
            )
        ),
        threads={BEANS: ExpectedThread()},
        comments=(
            _guest(1, "Orphan."),
            _guest(2, "One."),
            _guest(3, "Two.", parent=_id("c", 2)),
            _guest(4, "Who?", name="Bob"),
            _guest(5, "<b>Old</b>", html="<b>Old</b>"),
            _guest(6, "Spam.", status=Status.SPAM),
        ),
        says=(
            f"  comment 4: {_id('c', 1)}, first in comment 1",
            f"  comment 1: {_id('c', 1)} replies to {_id('c', 9)}",
            f"  comment 8: {_id('c', 7)}, thread {_id('b', 9)}",
            "Cycles of replies, cut at the earliest comment: 1",
            (
                "Corrected: comments whose author is not in the file, imported without the author "
                "(1, comment 5)"
            ),
            "Corrected: times without a time zone, read as UTC (1, comment 1)",
            'Left out: values of "mood" (1)',
        ),
    ),
    "an early version without addresses of comments, and a stray byte": Sample(
        data=_file(
            [_page(1, "/beans", title="Beans @")],
            [
                _comment(1, "D\u00e9j\u00e0 vu.", ADA, url=None, score="1"),
                _comment(2, "No time zone.", BOB, url=None, createdTime="2023-04-05T06:02:00"),
            ],
            [_commenter(ADA, "Ada L.", websiteUrl="ada.example"), _commenter(BOB, "Bob")],
        )
        .replace("\u00e9".encode(), b"\xe9")
        .replace(b"Beans @", b"Beans \\ud83d"),
        threads={BEANS: ExpectedThread("Beans \ufffd")},
        comments=(
            _guest(1, "D\u00e9j\u00e0 vu.", name="Ada L.", website="http://ada.example", up=1),
            _guest(2, "No time zone.", name="Bob"),
        ),
        says=(
            "Corrected: bytes that are not UTF-8, read as Windows-1252 (1, comment 1)",
            "Corrected: halves of characters (lone surrogates), replaced by U+FFFD (1, comment 1)",
            (
                "Corrected: websites without http:// or https://, completed with http:// "
                "(1, comment 1)"
            ),
        ),
    ),
}

REFUSED = {
    "no list of comments": (b'{"version": 3, "pages": []}', 'it has no list "comments"'),
    "no page": (
        _file([], [_comment(1, "x", pageId=None)], []),
        'comment 1: "pageId" is missing',
    ),
    "no date": (
        _file([_page(1, "/beans")], [_comment(1, "x"), _comment(2, "y", createdTime=None)], []),
        'comment 2: "createdTime" is missing',
    ),
    "an export of Commento": (
        b'{"version": 1, "comments": [{"commentHex": "1", "url": "/beans"}]}',
        "import it as `commento`",
    ),
    "a page with a wrong type": (
        _file([_page(1, "/beans", isReadonly="often")], [_comment(1, "x")], []),
        "\"isReadonly\" is not true or false: 'often'",
    ),
    "a file that is cut off": (
        _file([_page(1, "/beans")], [_comment(1, "x")], [])[:-2],
        "invalid JSON",
    ),
}

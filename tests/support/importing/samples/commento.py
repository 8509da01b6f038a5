"""Write exports of Commento, Commento++ and Comentario 2."""

import gzip
import json

from comments.domain.records import Status
from tests.support.importing.sample_files import Expected, ExpectedThread, Sample, at

BEANS, PEAS = "garden.example/beans", "garden.example/peas"
GUEST = "anonymous"
ZEROS = "0" * 64


def _hex(digit: str) -> str:
    return digit * 64


def _file(comments: list[dict[str, object]], commenters: list[dict[str, object]]) -> bytes:
    content = {"version": 1, "comments": comments, "commenters": commenters}
    return json.dumps(content, ensure_ascii=False, indent=1).encode()


def _comment(digit: str, text: str, author: str = GUEST, **more: object) -> dict[str, object]:
    """Return a comment of minute `digit` on the page on beans."""
    return {
        "commentHex": _hex(digit),
        "domain": "garden.example",
        "url": "/beans/",
        "commenterHex": author,
        "markdown": text,
        "html": "",
        "parentHex": "root",
        "score": 0,
        "state": "approved",
        "creationDate": f"2019-04-05T06:0{digit}:00.722181Z",
        "direction": 0,
        "deleted": False,
    } | more


def _commenter(key: str, name: str, **more: object) -> dict[str, object]:
    return {
        "commenterHex": key,
        "email": f"{name.split(maxsplit=1)[0].lower()}@mail.example",
        "name": name,
        "link": f"https://{name.split(maxsplit=1)[0].lower()}.example",
        "photo": "undefined",
        "provider": "commento",
        "joinDate": "2019-01-01T00:00:00Z",
        "isModerator": False,
    } | more


_ADA = _commenter("a1", "Ada L.", photo="https://ada.example/me.png", isModerator=True)
_ANON = {"email": "undefined", "link": "undefined", "provider": "anon"}

SANE = Sample(
    # Comments come before their commenters, who come once for each comment. One reply comes before
    # its parent.
    data=_file(
        [
            _comment("2", "A reply.", "b0", parentHex=_hex("1"), score=-2),
            _comment("1", "First \u2013 *hello*.", "a1", score=3),
            _comment("3", "Below.", "a1", parentHex=_hex("2")),
            _comment("4", "Held.", "b1", state="unapproved"),
            _comment("5", "Buy.", state="flagged"),
            _comment("6", "[deleted]", html="[deleted]", parentHex=_hex("1"), deleted=True),
            _comment("7", "On peas.", "a1", url="/peas"),
        ],
        [
            _ADA,
            _ADA,
            _commenter("b0", "Bob", **_ANON),
            _commenter("b1", "Bob", **_ANON),
            _ADA,
        ],
    ),
    addresses={"Ada L.": "ada@mail.example"},
    threads={BEANS: ExpectedThread(), PEAS: ExpectedThread()},
    comments=(
        Expected(
            thread=BEANS,
            id=_hex("1"),
            created=at(2019, 4, 5, 6, 1, 0, 722181),
            name="Ada L.",
            website="https://ada.example",
            text="First \u2013 *hello*.",
            html="<p>First \u2013 <em>hello</em>.</p>\n",
            up=3,
        ),
        Expected(
            thread=BEANS,
            id=_hex("2"),
            parent=_hex("1"),
            created=at(2019, 4, 5, 6, 2, 0, 722181),
            name="Bob",
            text="A reply.",
            html="<p>A reply.</p>\n",
            down=2,
        ),
        Expected(
            thread=BEANS,
            id=_hex("3"),
            parent=_hex("2"),
            created=at(2019, 4, 5, 6, 3, 0, 722181),
            name="Ada L.",
            website="https://ada.example",
            text="Below.",
            html="<p>Below.</p>\n",
        ),
        Expected(
            thread=BEANS,
            id=_hex("6"),
            parent=_hex("1"),
            status=Status.RETRACTED,
            created=at(2019, 4, 5, 6, 6, 0, 722181),
        ),
        Expected(
            thread=BEANS,
            id=_hex("4"),
            status=Status.PENDING,
            created=at(2019, 4, 5, 6, 4, 0, 722181),
            name="Bob",
            text="Held.",
            html="<p>Held.</p>\n",
        ),
        Expected(
            thread=BEANS,
            id=_hex("5"),
            status=Status.SPAM,
            created=at(2019, 4, 5, 6, 5, 0, 722181),
            name="Guest",
            text="Buy.",
            html="<p>Buy.</p>\n",
        ),
        Expected(
            thread=PEAS,
            id=_hex("7"),
            created=at(2019, 4, 5, 6, 7, 0, 722181),
            name="Ada L.",
            website="https://ada.example",
            text="On peas.",
            html="<p>On peas.</p>\n",
        ),
    ),
    says=(
        'Comments without a usable name, imported as "Guest": 1, comment 5',
        "Left out: dates when authors signed up (3)",
        "Left out: pictures of authors (1)",
        "Left out: roles of moderators (1)",
        "Left out: sign-in methods of authors (3)",
    ),
)


def _guest(digit: str, text: str, **more: object) -> Expected:
    """Return a stored comment of a guest on the page on beans."""
    values = {
        "thread": BEANS,
        "id": _hex(digit),
        "created": at(2019, 4, 5, 6, int(digit)),
        "name": "Guest",
        "text": text,
        "html": f"<p>{text}</p>\n",
    }
    return Expected(**(values | more))  # type: ignore[arg-type]


CROOKED = {
    "orphans, a cycle, a repeated id, missing commenters and an unknown state": Sample(
        data=gzip.compress(
            _file(
                [
                    _comment("1", "Orphan.", parentHex=_hex("9"), creationDate="2019-04-05T06:01"),
                    _comment("2", "One.", parentHex=_hex("3"), creationDate=1554444120),
                    _comment("3", "Two.", parentHex=_hex("2"), creationDate="1554444180000"),
                    _comment("1", "Again.", creationDate="2019-04-05T06:01:00Z"),
                    _comment("4", "Who?", "cc", state="odd", creationDate="2019-04-05T06:04:00Z"),
                    _comment("5", "[deleted]", creationDate="2019-04-05T08:05:00+02:00"),
                    _comment("6", "", html="<b>Old</b>", creationDate="2019-04-05T06:06:00Z")
                    | {"markdown": None, "mood": "fine"},
                ],
                [_commenter("dd", "Nobody", link="nobody.example")],
            )
        ),
        threads={BEANS: ExpectedThread()},
        comments=(
            _guest("1", "Orphan."),
            _guest("2", "One."),
            _guest("3", "Two.", parent=_hex("2")),
            _guest("4", "Who?", status=Status.PENDING, person="the missing commenter"),
            _guest("5", "", status=Status.RETRACTED, name="", html=""),
            _guest("6", "<b>Old</b>", html="<b>Old</b>"),
        ),
        says=(
            "  comment 4: " + _hex("1") + ", first in comment 1",
            "  comment 1: " + _hex("1") + " replies to " + _hex("9"),
            "Cycles of replies, cut at the earliest comment: 1",
            (
                'Corrected: comments without text or with the text "[deleted]", read as deleted '
                "(1, comment 6)"
            ),
            "Corrected: comments in an unknown state, read as pending (1, comment 5)",
            (
                "Corrected: comments whose author is not in the file, imported without the author "
                "(1, comment 5)"
            ),
            "Corrected: times without a time zone, read as UTC (1, comment 1)",
            'Left out: values of "mood" (1)',
        ),
    ),
    "Comentario 2 with its names of fields, other page ids and a stray byte": Sample(
        data=_file(
            [
                {
                    "commentHex": _hex("1"),
                    "host": "garden.example",
                    "path": "/beans",
                    "commenterHex": "a1",
                    "markdown": "D\u00e9j\u00e0 vu.",
                    "parentHex": "",
                    "score": "1",
                    "state": "approved",
                    "creationDate": "2019-04-05T06:01:00Z",
                },
                _comment("2", "By id.", ZEROS, url="tomatoes", creationDate="2019-04-05T06:02Z"),
                _comment(
                    "3",
                    "By address.",
                    url="http://garden.example/beans",
                    creationDate="2019-04-05T06:03Z",
                ),
            ],
            [
                {
                    "commenterHex": "a1",
                    "name": "Ada L.",
                    "email": "ada@mail.example",
                    "websiteUrl": "ada.example",
                    "avatarUrl": "",
                    "isModerator": None,
                }
            ],
        ).replace("\u00e9".encode(), b"\xe9"),
        threads={BEANS: ExpectedThread(), "tomatoes": ExpectedThread()},
        comments=(
            _guest(
                "1",
                "D\u00e9j\u00e0 vu.",
                name="Ada L.",
                website="http://ada.example",
                up=1,
            ),
            _guest("3", "By address."),
            _guest("2", "By id.", thread="tomatoes"),
        ),
        says=(
            "Corrected: bytes that are not UTF-8, read as Windows-1252 (1, comment 1)",
            (
                "Corrected: websites without http:// or https://, completed with http:// "
                "(1, comment 1)"
            ),
        ),
    ),
}

REFUSED = {
    "no list of comments": (b'{"version": 1, "commenters": []}', 'it has no list "comments"'),
    "a comment that is not an object": (b'{"comments": [7]}', "comment 1: is not a JSON object"),
    "no id": (_file([_comment("1", "x", commentHex="")], []), 'comment 1: "commentHex" is missing'),
    "no date": (
        _file([_comment("1", "x"), _comment("2", "y", creationDate="soon")], []),
        "comment 2: \"creationDate\" is not a time such as 2024-05-01T18:30:00Z: 'soon'",
    ),
    "a damaged gzip file": (gzip.compress(_file([_comment("1", "x")], []))[:-9], "is damaged"),
    "an export of Comentario 3": (
        b'{"version": 3, "comments": [{"id": "1", "pageId": "2"}]}',
        "import it as `comentario`",
    ),
    "a commenter with a wrong type": (
        _file([_comment("1", "x")], [_commenter("a1", "Ada", isModerator="often")]),
        "commenter 1: \"isModerator\" is not true or false: 'often'",
    ),
}

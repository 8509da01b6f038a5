"""Write files in the simple format: JSON lines and CSV."""

import gzip
import json

from comments.domain.records import Status, ThreadState
from tests.support.importing.sample_files import Expected, ExpectedThread, Sample, at

BEANS, PEAS = "garden.example/beans", "garden.example/peas"


def _lines(*comments: dict[str, object]) -> bytes:
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in comments).encode()


def _comment(number: int, text: str, **more: object) -> dict[str, object]:
    """Return a comment of minute `number` on the page on beans."""
    return {
        "id": number,
        "page": "https://garden.example/beans/",
        "time": f"2021-04-05T06:{number:02}:00Z",
        "text": text,
    } | more


def _stored(number: int, text: str, **more: object) -> Expected:
    """Return a stored comment on the page on beans."""
    values = {
        "thread": BEANS,
        "id": str(number),
        "created": at(2021, 4, 5, 6, number),
        "name": "Ada",
        "text": text,
        "html": f"<p>{text}</p>\n" if text else "",
    }
    return Expected(**(values | more))  # type: ignore[arg-type]


_ADA = {"author": "Ada", "email": "ada@mail.example", "website": "https://ada.example"}

SANE = Sample(
    data=_lines(
        _comment(2, "A reply.", parent=1, author="Bob", up=1, down=4),
        _comment(
            1,
            "First \u2013 *hello*.",
            **_ADA,
            parent=None,
            title="Beans",
            up=3,
            pinned=True,
            edited="2021-04-06T00:00:00Z",
        ),
        _comment(3, "<i>Below</i>", parent=2, **_ADA, format="html", closed=True),
        _comment(4, "A < B\n*plain*", author="Bob", format="plain", status="pending"),
        _comment(5, "Buy.", author="Eve", status="spam"),
        _comment(6, "No.", author="Eve", status="rejected"),
        _comment(7, "Gone.", author="Eve", status="deleted", parent=1),
        _comment(8, "On peas.", **_ADA, page="/peas", time=1617602880, ip="192.0.2.7"),
    ),
    addresses={"Ada": "ada@mail.example"},
    threads={BEANS: ExpectedThread("Beans", ThreadState.CLOSED), PEAS: ExpectedThread()},
    comments=(
        _stored(
            1,
            "First \u2013 *hello*.",
            html="<p>First \u2013 <em>hello</em>.</p>\n",
            website="https://ada.example",
            edited=at(2021, 4, 6),
            up=3,
            pinned=True,
        ),
        _stored(2, "A reply.", parent="1", name="Bob", up=1, down=4),
        _stored(
            3,
            "<i>Below</i>",
            parent="2",
            html="<i>Below</i>",
            website="https://ada.example",
        ),
        _stored(7, "", parent="1", name="", status=Status.RETRACTED),
        _stored(
            4,
            "<p>A &lt; B<br>\n*plain*</p>",
            name="Bob",
            status=Status.PENDING,
            html="<p>A &lt; B<br>\n*plain*</p>",
        ),
        _stored(5, "Buy.", name="Eve", status=Status.SPAM),
        _stored(6, "No.", name="Eve", status=Status.REJECTED),
        _stored(8, "On peas.", thread=PEAS, website="https://ada.example"),
    ),
    says=(
        "Left out: texts of deleted comments (1)",
        'Left out: values of "ip" (1)',
    ),
)

_CSV = """\
id;page;time;parent;author;text;status;closed;mood
2.0;/beans;2021-04-05 06:02;1.0;Bob;"A ""reply"";
in two lines.";;;
1.0;/beans;1617602460000;;Ada;First.;Approved;FALSE;fine

;;;;;;;;
3;/beans;2021-04-05T08:03:00+02:00;2;Ada;D\u00e9j\u00e0 vu.;;TRUE;
"""

CROOKED = {
    "orphans, a cycle, a repeated id, texts for numbers and an empty text": Sample(
        data=b"\xef\xbb\xbf"
        + _lines(
            _comment(1, "Orphan.", parent=9, author="Ada", time="2021-04-05T06:01"),
            _comment(2, "One.", parent="3", author="Ada", time="1617602520"),
            _comment(3, "Two.", parent=2.0, author="Ada", down="-1", up="2"),
            _comment(1, "Again.", author="Ada"),
            _comment(4, "", author=None, parent=""),
            _comment(5, "D\u00e9j\u00e0 vu.", author="Ada", parent=0, website="ada.example"),
            _comment(6, "By id.", author="Ada", page="tomatoes"),
        ).replace("\u00e9".encode(), b"\xe9"),
        threads={BEANS: ExpectedThread(), "tomatoes": ExpectedThread()},
        comments=(
            _stored(1, "Orphan."),
            _stored(2, "One."),
            _stored(3, "Two.", parent="2", up=2),
            _stored(4, "", name="Guest"),
            _stored(5, "D\u00e9j\u00e0 vu.", website="http://ada.example"),
            _stored(6, "By id.", thread="tomatoes"),
        ),
        says=(
            "  line 4: 1, first in line 1",
            "  line 1: 1 replies to 9",
            "Cycles of replies, cut at the earliest comment: 1",
            "Comments without text: 1, line 5",
            "Corrected: bytes that are not UTF-8, read as Windows-1252 (1, line 6)",
            "Corrected: negative numbers of votes, read as 0 (1, line 3)",
            "Corrected: times without a time zone, read as UTC (1, line 1)",
            "Corrected: whole numbers with a decimal point, such as 12.0 (1, line 3)",
        ),
    ),
    "CSV with semicolons, numbers with a decimal point, a stray byte and empty rows": Sample(
        data=gzip.compress(_CSV.replace("\n", "\r\n").encode().replace(b"\xc3\xa9", b"\xe9")),
        threads={BEANS: ExpectedThread("", ThreadState.CLOSED)},
        comments=(
            _stored(1, "First."),
            _stored(
                2,
                'A "reply";\r\nin two lines.',
                html='<p>A "reply";\nin two lines.</p>\n',
                parent="1",
                name="Bob",
            ),
            _stored(3, "D\u00e9j\u00e0 vu.", parent="2"),
        ),
        says=(
            "Corrected: bytes that are not UTF-8, read as Windows-1252 (1, line 7)",
            "Corrected: times in milliseconds instead of seconds (1, line 4)",
            "Corrected: times without a time zone, read as UTC (1, line 2)",
            "Corrected: whole numbers with a decimal point, such as 12.0 (3, lines 2, 2, 4)",
            'Left out: values of "mood" (1)',
        ),
    ),
    "CSV with tabs and a byte order mark": Sample(
        data=b'\xef\xbb\xbf"ID"\tPage\ttime\tText\n1\t/beans\t2021-04-05T06:01Z\tA; b, c.\n',
        threads={BEANS: ExpectedThread()},
        comments=(_stored(1, "A; b, c.", name="Guest"),),
    ),
}

_HEAD = b"id,page,time,text\n"

REFUSED = {
    "a line without a page": (
        _lines(_comment(1, "x"), {"id": 2, "pgae": "/beans", "time": 0, "text": "y"}),
        ':2: "page" is missing; rename "pgae" if it is the "page"',
    ),
    "a blank page": (_lines(_comment(1, "x", page=" ")), ':1: "page" is missing'),
    "a line without a text": (
        _lines({"id": 2, "page": "/beans", "time": 0}),
        ':1: "text" is missing',
    ),
    "an unknown status": (
        _lines(_comment(1, "x", status="fine")),
        "\"status\" is not one of approved, pending, spam, rejected, deleted: 'fine'",
    ),
    "an unknown format": (
        _lines(_comment(1, "x", format="bbcode")),
        "\"format\" is not one of markdown, html, plain: 'bbcode'",
    ),
    "an id of zero": (_lines(_comment(0, "x")), ':1: "id" is 0, but 0 as a "parent" means a root'),
    "a JSON list": (b"[" + _lines(_comment(1, "x")) + b"]", ":1: the file is one JSON list"),
    "an object on several lines": (json.dumps(_comment(1, "x"), indent=1).encode(), "invalid JSON"),
    "an empty file": (b"", 'the header has no column "id"; its columns are: none'),
    "a missing column": (
        b"id,pgae,time,text\n",
        ':1: the header has no column "page"; its columns are: id, pgae, time, text',
    ),
    "a repeated column": (
        b"id,page,time,text,Id\n",
        ':1: the header has more than one column "id"',
    ),
    "a row with too few values": (
        _HEAD + b'1,/beans,0,"two\nlines"\n2,/beans,0\n',
        ":4: the row has 3 values, but the header names 4 columns; put quotation marks around",
    ),
    "a row with too many values": (
        _HEAD + b"1,/beans,0,red, green\n",
        ":2: the row has 5 values, but the header names 4 columns",
    ),
    "a quotation mark that is not closed": (
        _HEAD + b'1,/beans,0,"two\nlines"\n2,/beans,0,"x\n3,/beans,0,x\n',
        ":4: invalid CSV: the quotation mark that opens a value is never closed",
    ),
    "a long text after a quotation mark that is not closed": (
        _HEAD + b'1,/beans,0,"x\n' + b"2,/beans,0,x\n" * 20_000,
        ":2: invalid CSV: a value is too long, or the quotation mark that opens it is never closed",
    ),
    "a quotation mark that is not doubled": (
        _HEAD + b'1,/beans,0,"a "big" bean"\n',
        ":2: invalid CSV: in a quoted value, a quotation mark is not doubled",
    ),
    "a NUL character": (_HEAD + b"1,/beans,0,a\0b\n", ":2: the line has a NUL character"),
    "old line ends": (
        _HEAD.replace(b"\n", b"\r") + b"1,/beans,0,x\r",
        ':1: invalid CSV: a carriage return ("\\r") is neither in quotation marks nor before',
    ),
    "an old line end": (
        _HEAD + b"1,/beans,0,x\n2,/beans,0,y\r3,/beans,0,z\n",
        ':3: invalid CSV: a carriage return ("\\r") is neither in quotation marks nor before',
    ),
    "UTF-16": (
        _HEAD.decode().encode("utf-16"),
        ":1: the text is UTF-16; convert the file to UTF-8, for example with `iconv -f UTF-16 ",
    ),
    "GBK": (
        _HEAD + "1,/beans,0,\u73ab\u7470\n".encode("gbk"),
        ":2: the text is not UTF-8; convert the file to UTF-8, for example with `iconv -f GBK ",
    ),
    "a date that is none": (
        _HEAD + b"1,/beans,soon,x\n",
        ":2: \"time\" is not a time such as 2024-05-01T18:30:00Z: 'soon'",
    ),
}

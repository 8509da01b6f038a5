"""Write databases of Isso."""

import gzip
import sqlite3
from typing import Any

from comments.domain.records import Status
from comments.transfer.parsing import record_fields
from tests.support.importing.sample_files import Expected, ExpectedThread, Sample, at

ROSES, TULIPS = "garden.example/roses", "garden.example/tulips"
THREADS = "CREATE TABLE threads (id INTEGER PRIMARY KEY, uri VARCHAR(256) UNIQUE, title VARCHAR)"
COMMENTS = """
CREATE TABLE comments (tid REFERENCES threads(id), id INTEGER PRIMARY KEY, parent INTEGER,
created FLOAT NOT NULL, modified FLOAT, mode INTEGER, remote_addr VARCHAR, text VARCHAR,
author VARCHAR, email VARCHAR, website VARCHAR, likes INTEGER DEFAULT 0,
dislikes INTEGER DEFAULT 0, voters BLOB NOT NULL, notification INTEGER DEFAULT 0)
"""
# Databases of the first versions.
OLD = COMMENTS.replace(", notification INTEGER DEFAULT 0", "").replace("NOT NULL)", "NOT NULL)")
PAGES = ((1, "/roses/", "Roses &amp; thorns"), (2, "/tulips", "Tulips"))
START = 1_425_463_200.0  # 2015-03-04 10:00 UTC


def row(number: int, text: object, *, tid: object = 1, **more: object) -> dict[str, object]:
    """Return a comment of minute `number`, whose author is Bob."""
    return {
        "tid": tid,
        "id": number,
        "created": START + 60 * number,
        "mode": 1,
        "text": text,
        "author": "Bob",
        "voters": b"\0\1",
        "remote_addr": "192.0.2.0",
    } | more


def connected(
    *rows: dict[str, object],
    schema: str = COMMENTS,
    pages: tuple[tuple[object, ...], ...] = PAGES,
    path: Any = ":memory:",
) -> sqlite3.Connection:
    """Return an open database with these comments. Its pages are small, so the file is small."""
    found = sqlite3.connect(path, isolation_level=None)
    found.execute("PRAGMA page_size = 512")
    found.execute("PRAGMA synchronous = OFF")
    found.execute(THREADS)
    found.execute(schema)
    found.executemany("INSERT INTO threads VALUES (?, ?, ?)", pages)
    for each in rows:
        names, marks = ", ".join(each), ", ".join("?" * len(each))
        found.execute(f"INSERT INTO comments ({names}) VALUES ({marks})", list(each.values()))  # noqa: S608
    return found


def file(*rows: dict[str, object], **more: Any) -> bytes:
    """Return the bytes of a database."""
    found = connected(*rows, **more)
    data = found.serialize()
    found.close()
    return data


SANE = Sample(
    data=file(
        row(
            1,
            "First \u2013 see *this* & that.",
            author="Ada &amp; co",
            email="ada@garden.example",
            website="http://ada.example/?a=1&amp;b=2",
            likes=3,
            dislikes=1,
            modified=START + 90.5,
            notification=1,
        ),
        row(2, "A reply\nin two lines.", parent=1),
        row(3, "", parent=1, mode=4, author=None),
        row(4, "To what is gone, <b>boldly</b>.", parent=3, author=None),
        row(5, "Held.", mode=2),
        row(6, "On tulips.", tid=2, author="Ada", email="ada@garden.example"),
        row(7, "<p>From Disqus<br>in <script>x</script>HTML.</p>", tid=2, parent=6),
    ),
    addresses={"Ada": "ada@garden.example"},
    threads={ROSES: ExpectedThread("Roses & thorns"), TULIPS: ExpectedThread("Tulips")},
    comments=(
        Expected(
            thread=ROSES,
            id="1",
            created=at(2015, 3, 4, 10, 1),
            name="Ada & co",
            person="Ada",
            website="http://ada.example/?a=1&b=2",
            text="First \u2013 see *this* & that.",
            html="<p>First \u2013 see <em>this</em> &amp; that.</p>\n",
            edited=at(2015, 3, 4, 10, 1, 30, 500_000),
            up=3,
            down=1,
        ),
        Expected(
            thread=ROSES,
            id="2",
            parent="1",
            created=at(2015, 3, 4, 10, 2),
            name="Bob",
            text="<p>A reply<br />\nin two lines.</p>\n",
            html="<p>A reply<br>\nin two lines.</p>\n",
        ),
        Expected(
            thread=ROSES,
            id="3",
            parent="1",
            status=Status.RETRACTED,
            created=at(2015, 3, 4, 10, 3),
        ),
        Expected(
            thread=ROSES,
            id="4",
            parent="3",
            created=at(2015, 3, 4, 10, 4),
            name="Guest",
            person=" ",
            text="<p>To what is gone, <b>boldly</b>.</p>\n",
            html="<p>To what is gone, <b>boldly</b>.</p>\n",
        ),
        Expected(
            thread=ROSES,
            id="5",
            status=Status.PENDING,
            created=at(2015, 3, 4, 10, 5),
            name="Bob",
            text="Held.",
            html="<p>Held.</p>\n",
        ),
        Expected(
            thread=TULIPS,
            id="6",
            created=at(2015, 3, 4, 10, 6),
            name="Ada",
            text="On tulips.",
            html="<p>On tulips.</p>\n",
        ),
        Expected(
            thread=TULIPS,
            id="7",
            parent="6",
            created=at(2015, 3, 4, 10, 7),
            name="Bob",
            text="<p>From Disqus<br>in <script>x</script>HTML.</p>",
            html="<p>From Disqus<br>in HTML.</p>",
        ),
    ),
    says=(
        "Left out: IP addresses (7)",
        "Left out: filters of the addresses of voters (7)",
        "Left out: subscriptions to replies (1)",
        "Comments with scripts, styles, formulas or drawings, which were left out: 1, comment 7",
    ),
)


def _short(thread: str, number: int, text: str, **more: Any) -> Expected:
    """Return an expected comment of Bob."""
    return Expected(
        thread=thread,
        id=str(number),
        created=at(2015, 3, 4, 10, number),
        name="Bob",
        text=text,
        html=f"<p>{text}</p>\n" if text else "",
        **more,
    )


CROOKED = {
    "parents, modes and types": Sample(
        data=file(
            row(1, "Orphan.", parent=99),
            row(2, "Of another thread.", tid=2, parent=1),
            row(3, "Unknown mode.", mode=8),
            row(4, None, parent=0),
            row(5, b"caf\xe9", created=str(START + 300), likes="2", dislikes=-1),
            row(6, "Nowhere.", tid=77),
            row(7, "No thread.", tid=None),
            row(8, "Host only.", website="bob.example", created=(START + 480) * 1000),
        ),
        threads={ROSES: ExpectedThread("Roses & thorns"), TULIPS: ExpectedThread("Tulips")},
        comments=(
            _short(ROSES, 1, "Orphan."),
            _short(ROSES, 3, "Unknown mode.", status=Status.PENDING),
            _short(ROSES, 4, ""),
            _short(ROSES, 5, "caf\u00e9", up=2),
            _short(ROSES, 8, "Host only.", website="http://bob.example"),
            _short(TULIPS, 2, "Of another thread."),
        ),
        says=(
            "  comment 1: 1 replies to 99",
            "  comment 2: 2 replies to 1",
            "  comment 6: 6, thread 77",
            "  comment 7: 7, thread ",
            "Comments without text: 1, comment 4",
            "Corrected: comments with an unknown mode, read as pending (1, comment 3)",
            "Corrected: bytes that are not UTF-8, read as Windows-1252 (1, comment 5)",
            "Corrected: negative numbers of votes, read as 0 (1, comment 5)",
            "Corrected: times in milliseconds instead of seconds (1, comment 8)",
            f"Corrected: {record_fields.NO_SCHEME} (1, comment 8)",
        ),
    ),
    "ids that are not unique": Sample(
        data=file(
            row(1, "One."),
            row(2, "Two.", tid=2),
            row(1, "Again.", tid=2),
            row(3, "Three.", tid=2, parent=1),
            schema=COMMENTS.replace("id INTEGER PRIMARY KEY", "id INTEGER"),
        ),
        threads={ROSES: ExpectedThread("Roses & thorns"), TULIPS: ExpectedThread("Tulips")},
        comments=(
            _short(ROSES, 1, "One."),
            _short(TULIPS, 2, "Two."),
            _short(TULIPS, 3, "Three."),
        ),
        says=("  comment 1: 1, first in comment 1", "  comment 3: 3 replies to 1"),
    ),
    "an old database with addresses and ids as pages": Sample(
        data=file(
            row(1, "One.", tid=11, mood=b"\xff\xff"),
            row(2, "Two.", tid=12),
            row(3, "Three.", tid=13, parent=2),
            schema=OLD.replace("voters", "mood BLOB, voters"),
            pages=(
                (11, "https://garden.example/roses", None),
                (12, "/tulips", None),
                (13, "/tulips/", "Tulips again"),
                (14, "/empty", None),
            ),
        ),
        threads={ROSES: ExpectedThread(), TULIPS: ExpectedThread("Tulips again")},
        comments=(
            _short(ROSES, 1, "One."),
            _short(TULIPS, 2, "Two."),
            _short(TULIPS, 3, "Three.", parent="2"),
        ),
        says=(
            "Pages merged into one thread: 1",
            "  comment 2: garden.example/tulips: /tulips (comment 2), /tulips/ (comment 3)",
            'Left out: values of "mood" (1)',
        ),
    ),
}


def _of_another_program() -> bytes:
    found = sqlite3.connect(":memory:")
    found.execute(COMMENTS)
    return found.serialize()


_CUT = SANE.data[: len(SANE.data) // 2]

REFUSED = {
    "a date": (
        file(row(1, "x"), row(7, "x", created="soon")),
        ', comment 7: "created" is not a time',
    ),
    "a number of votes": (
        file(row(3, "x", likes="many")),
        ", comment 3: \"likes\" is not a whole number: 'many'",
    ),
    "a huge time": (file(row(2, "x", created=1e300)), ', comment 2: "created" is not a time'),
    "no id": (
        file(row(1, "x", id=None), schema=COMMENTS.replace("INTEGER PRIMARY KEY", "INTEGER")),
        ', comment 0: "id" is missing',
    ),
    "bytes that are not text": (
        file(row(3, b"\xc4\xe3\xba\xc3")),
        ', comment 3: "text" is not text in UTF-8; correct it in a copy of the database',
    ),
    "no table": (
        _of_another_program(),
        'not a database of Isso: it has no table "threads"',
    ),
    "no column": (
        file(schema=COMMENTS.replace("author VARCHAR, ", "")),
        'not a database of Isso: table "comments" has no column "author"',
    ),
    "another file": (b"<rss/>", "not an SQLite database, or it is encrypted"),
    "a packed file": (gzip.compress(SANE.data), "the file is packed; unpack it with `gunzip`"),
    "a cut off file": (_CUT, f"is cut off: it has {len(_CUT):,} bytes; copy it again"),
    "a damaged file": (
        SANE.data[:1024] + bytes(1024) + SANE.data[2048:],
        'Try to repair it with `sqlite3 export ".recover" | sqlite3 repaired.db`',
    ),
    "a huge value": (file(row(3, "x" * (2 << 20))), "a value is longer than 1,048,576 bytes"),
}

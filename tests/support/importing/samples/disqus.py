"""Write exports of Disqus."""

import gzip

from comments.domain.records import Status, ThreadState
from tests.support.importing.sample_files import Expected, ExpectedThread, Sample, at

ROSES, TULIPS = "garden.example/roses", "garden.example/tulips"
_THREADS = """\
<thread dsq:id="1"><id/><link>https://garden.example/roses/</link>
<title>Roses &amp;amp; thorns</title><isClosed>false</isClosed><isDeleted>false</isDeleted></thread>
<thread dsq:id="2"><id>t</id><link>https://garden.example/tulips</link><title>Tulips</title>
<isClosed>true</isClosed><isDeleted>false</isDeleted></thread>
"""


def _file(*posts: str, threads: str = _THREADS) -> bytes:
    opening = '<disqus xmlns="http://disqus.com" xmlns:dsq="http://disqus.com/disqus-internals">'
    version = '<?xml version="1.0" encoding="utf-8"?>'
    return "\n".join([version, opening, threads, *posts, "</disqus>"]).encode()


def _post(number: int, text: str, author: str, *, thread: int = 1, more: str = "") -> str:
    """Return a post of minute `number`; `more` are further elements, which come first."""
    return (
        f'<post dsq:id="{number}">{more}<message><![CDATA[{text}]]></message>'
        f"<createdAt>2015-03-04T10:{number:02}:00Z</createdAt>"
        f"<isDeleted>false</isDeleted><isSpam>false</isSpam>"
        f'<author>{author}</author><thread dsq:id="{thread}"/></post>'
    )


def _answer(number: int) -> str:
    return f'<parent dsq:id="{number}"/>'


_ADA = "<name>Ada</name><email>ada@garden.example</email>"
_ADA_LATER = "<name>Ada L.</name><email>Ada@garden.example</email>"
_BOB = "<name>Bob</name><username>bob</username>"

SANE = Sample(
    data=_file(
        _post(3, "<p>A reply before its <b>parent</b>.</p>", _BOB, more=_answer(1)),
        _post(1, '<p>First \u2013 see <a href="https://x.example">x</a>.</p>', _ADA),
        _post(4, "<p>Gone.</p>", _BOB, more="<isDeleted>true</isDeleted>" + _answer(1)),
        _post(5, "<p>To what is gone.</p>", _ADA_LATER, more=_answer(4)),
        _post(6, "<p>Buy.</p>", "<name>Eve</name>", more="<isSpam>true</isSpam>"),
        _post(7, "<p>Last.</p>", _BOB),
        _post(8, "<p>On tulips.</p>", _ADA, thread=2),
        _post(9, "<p>Yes.</p>", _BOB, thread=2, more=_answer(8)),
    ),
    addresses={"Ada": "ada@garden.example"},
    threads={
        ROSES: ExpectedThread("Roses & thorns"),
        TULIPS: ExpectedThread("Tulips", ThreadState.CLOSED),
    },
    comments=(
        Expected(
            thread=ROSES,
            id="1",
            created=at(2015, 3, 4, 10, 1),
            name="Ada",
            text='<p>First \u2013 see <a href="https://x.example">x</a>.</p>',
            html='<p>First \u2013 see <a href="https://x.example" '
            'rel="nofollow ugc noopener">x</a>.</p>',
        ),
        Expected(
            thread=ROSES,
            id="3",
            parent="1",
            created=at(2015, 3, 4, 10, 3),
            name="Bob",
            text="<p>A reply before its <b>parent</b>.</p>",
            html="<p>A reply before its <b>parent</b>.</p>",
        ),
        Expected(
            thread=ROSES,
            id="4",
            parent="1",
            status=Status.RETRACTED,
            created=at(2015, 3, 4, 10, 4),
        ),
        Expected(
            thread=ROSES,
            id="5",
            parent="4",
            created=at(2015, 3, 4, 10, 5),
            name="Ada L.",
            person="Ada",
            text="<p>To what is gone.</p>",
            html="<p>To what is gone.</p>",
        ),
        Expected(
            thread=ROSES,
            id="6",
            status=Status.SPAM,
            created=at(2015, 3, 4, 10, 6),
            name="Eve",
            text="<p>Buy.</p>",
            html="<p>Buy.</p>",
        ),
        Expected(
            thread=ROSES,
            id="7",
            created=at(2015, 3, 4, 10, 7),
            name="Bob",
            text="<p>Last.</p>",
            html="<p>Last.</p>",
        ),
        Expected(
            thread=TULIPS,
            id="8",
            created=at(2015, 3, 4, 10, 8),
            name="Ada",
            text="<p>On tulips.</p>",
            html="<p>On tulips.</p>",
        ),
        Expected(
            thread=TULIPS,
            id="9",
            parent="8",
            created=at(2015, 3, 4, 10, 9),
            name="Bob",
            text="<p>Yes.</p>",
            html="<p>Yes.</p>",
        ),
    ),
)

CROOKED = {
    "orphan, cycle and repeated id": Sample(
        data=_file(
            _post(1, "Orphan.", _BOB, more=_answer(99)),
            _post(2, "Round.", _BOB, more=_answer(3)),
            _post(3, "And round.", _BOB, more=_answer(2)),
            _post(3, "Again.", _BOB),
        ),
        threads={ROSES: ExpectedThread("Roses & thorns")},
        comments=(
            Expected(
                thread=ROSES,
                id="1",
                created=at(2015, 3, 4, 10, 1),
                name="Bob",
                text="Orphan.",
                html="Orphan.",
            ),
            Expected(
                thread=ROSES,
                id="2",
                created=at(2015, 3, 4, 10, 2),
                name="Bob",
                text="Round.",
                html="Round.",
            ),
            Expected(
                thread=ROSES,
                id="3",
                parent="2",
                created=at(2015, 3, 4, 10, 3),
                name="Bob",
                text="And round.",
                html="And round.",
            ),
        ),
        says=(
            "Replies to comments that are not in the file, imported as roots: 1",
            "Cycles of replies, cut at the earliest comment: 1",
            "  line 11: 3, first in line 10",
        ),
    ),
    "gzip, a missing declaration and times without a zone": Sample(
        data=gzip.compress(
            b"\n\n"
            + _file(_post(1, "One.", _BOB), _post(2, "Two.", _BOB, more=_answer(1)))
            .replace(b' xmlns:dsq="http://disqus.com/disqus-internals"', b"")
            .replace(b":00Z", b":00")
        ),
        threads={ROSES: ExpectedThread("Roses & thorns")},
        comments=(
            Expected(
                thread=ROSES,
                id="1",
                created=at(2015, 3, 4, 10, 1),
                name="Bob",
                text="One.",
                html="One.",
            ),
            Expected(
                thread=ROSES,
                id="2",
                parent="1",
                created=at(2015, 3, 4, 10, 2),
                name="Bob",
                text="Two.",
                html="Two.",
            ),
        ),
        says=("Corrected: times without a time zone, read as UTC (2, lines 10, 11)",),
    ),
}

REFUSED = {
    "no date": (
        _file(_post(1, "x", _ADA).replace("2015-03-04", "yesterday")),
        ":8: not a valid date",
    ),
    "no id": (_file(_post(1, "x", _ADA).replace('"1"', '""', 1)), ":8: not a valid id"),
    "a WordPress export": (b"<rss/>", "not a Disqus export"),
}

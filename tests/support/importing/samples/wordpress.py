"""Write exports of WordPress (WXR)."""

from comments.domain.records import Status, ThreadState
from tests.support.importing.sample_files import Expected, ExpectedThread, Sample, at

BEANS, PEAS = "garden.example/beans", "garden.example/peas"


def _file(*items: str) -> bytes:
    opening = '<rss version="2.0" xmlns:wp="http://wordpress.org/export/1.2/"><channel>'
    version = '<?xml version="1.0" encoding="UTF-8"?>'
    return "\n".join([version, opening, *items, "</channel></rss>"]).encode()


def _item(name: str, *comments: str, more: str = "") -> str:
    """Return a post with its comments; `more` are further elements of the post."""
    head = (
        f"<item><title><![CDATA[{name.title()} &#038; more]]></title>"
        f"<link>https://garden.example/{name}/</link><wp:status>publish</wp:status>{more}"
    )
    return "\n".join([head, *comments, "</item>"])


def _comment(number: int, text: str, author: str, more: str = "", parent: int = 0) -> str:
    return (
        f"<wp:comment><wp:comment_id>{number}</wp:comment_id>"
        f"<wp:comment_author>{author}</wp:comment_author>{more}"
        f"<wp:comment_date_gmt>2010-05-06 07:{number:02}:00</wp:comment_date_gmt>"
        f"<wp:comment_content><![CDATA[{text}]]></wp:comment_content>"
        f"<wp:comment_approved>1</wp:comment_approved><wp:comment_type/>"
        f"<wp:comment_parent>{parent}</wp:comment_parent></wp:comment>"
    )


def _field(name: str, value: str) -> str:
    return f"<wp:comment_{name}>{value}</wp:comment_{name}>"


_ADA = _field("author_email", "ada@garden.example") + _field("author_url", "https://ada.example/")

SANE = Sample(
    data=_file(
        _item(
            "beans",
            _comment(2, "A reply\nin two lines.", "Bob", parent=1),
            _comment(1, "First \u2013 <em>hello</em>.", "Ada", _ADA),
            _comment(3, "Held.", "Bob", _field("approved", "0"), parent=2),
            _comment(4, "[...]", "Other blog", _field("type", "pingback")),
            _comment(5, "Buy.", "Eve", _field("approved", "spam")),
            _comment(6, "In the bin.", "Eve", _field("approved", "trash")),
            more="<wp:comment_status>closed</wp:comment_status>",
        ),
        _item(
            "peas",
            _comment(7, "On peas.", "Ada L.", _ADA),
            _comment(8, "Yes: http://b.example/c", "Bob", parent=7),
        ),
    ),
    addresses={"Ada": "ada@garden.example"},
    threads={
        BEANS: ExpectedThread("Beans & more", ThreadState.CLOSED),
        PEAS: ExpectedThread("Peas & more"),
    },
    comments=(
        Expected(
            thread=BEANS,
            id="1",
            created=at(2010, 5, 6, 7, 1),
            name="Ada",
            website="https://ada.example/",
            text="<p>First \u2013 <em>hello</em>.</p>",
            html="<p>First \u2013 <em>hello</em>.</p>",
        ),
        Expected(
            thread=BEANS,
            id="2",
            parent="1",
            created=at(2010, 5, 6, 7, 2),
            name="Bob",
            text="<p>A reply<br>\nin two lines.</p>",
            html="<p>A reply<br>\nin two lines.</p>",
        ),
        Expected(
            thread=BEANS,
            id="3",
            parent="2",
            status=Status.PENDING,
            created=at(2010, 5, 6, 7, 3),
            name="Bob",
            text="<p>Held.</p>",
            html="<p>Held.</p>",
        ),
        Expected(
            thread=BEANS,
            id="5",
            status=Status.SPAM,
            created=at(2010, 5, 6, 7, 5),
            name="Eve",
            text="<p>Buy.</p>",
            html="<p>Buy.</p>",
        ),
        Expected(
            thread=BEANS,
            id="6",
            status=Status.REJECTED,
            created=at(2010, 5, 6, 7, 6),
            name="Eve",
            text="<p>In the bin.</p>",
            html="<p>In the bin.</p>",
        ),
        Expected(
            thread=PEAS,
            id="7",
            created=at(2010, 5, 6, 7, 7),
            name="Ada L.",
            person="Ada",
            website="https://ada.example/",
            text="<p>On peas.</p>",
            html="<p>On peas.</p>",
        ),
        Expected(
            thread=PEAS,
            id="8",
            parent="7",
            created=at(2010, 5, 6, 7, 8),
            name="Bob",
            text='<p>Yes: <a href="http://b.example/c">http://b.example/c</a></p>',
            html='<p>Yes: <a href="http://b.example/c" rel="nofollow ugc noopener">'
            "http://b.example/c</a></p>",
        ),
    ),
    says=(
        "Items that are not comments, left out: 1 (1 pingback), line 8",
        "Threads that are closed in the file, so readers cannot post in them: 1, line 3",
    ),
)

CROOKED = {
    "a draft, an unknown status and a reply to a pingback": Sample(
        data=_file(
            _item(
                "beans",
                _comment(1, "[...]", "Other blog", _field("type", "trackback")),
                _comment(2, "Thanks.", "Bob", parent=1),
                _comment(3, "Who knows.", "Bob", _field("approved", "perhaps")),
            ),
            _item("peas", _comment(4, "Early.", "Bob"), more="<wp:status>draft</wp:status>"),
        ).replace(
            b"<wp:status>publish</wp:status><wp:status>draft</wp:status>",
            b"<wp:status>draft</wp:status>",
        ),
        threads={BEANS: ExpectedThread("Beans & more"), PEAS: ExpectedThread()},
        comments=(
            Expected(
                thread=BEANS,
                id="2",
                created=at(2010, 5, 6, 7, 2),
                name="Bob",
                text="<p>Thanks.</p>",
                html="<p>Thanks.</p>",
            ),
            Expected(
                thread=BEANS,
                id="3",
                status=Status.PENDING,
                created=at(2010, 5, 6, 7, 3),
                name="Bob",
                text="<p>Who knows.</p>",
                html="<p>Who knows.</p>",
            ),
            Expected(
                thread=PEAS,
                id="4",
                status=Status.PENDING,
                created=at(2010, 5, 6, 7, 4),
                name="Bob",
                text="<p>Early.</p>",
                html="<p>Early.</p>",
            ),
        ),
        says=("Replies to items that were left out, imported as roots: 1",),
    ),
    "text around the export, an undeclared prefix and texts that are not escaped": Sample(
        data=b"<b>Warning</b>: x in y.php\n"
        + _file(
            _item(
                "beans",
                _comment(1, "a[b[0]]>c</i> caf\u00e9\x08", "Al & Bo&nbsp;C.")
                .replace(
                    "<wp:comment_date_gmt>2010-05-06 07:01:00", "<wp:comment_date>2010-05-06 08:01"
                )
                .replace("</wp:comment_date_gmt>", "</wp:comment_date>"),
                more="<atom:link/>",
            ),
        ).replace(b"\xc3\xa9", b"\xe9")
        + b"\n<p>Done.",
        threads={BEANS: ExpectedThread("Beans & more")},
        comments=(
            Expected(
                thread=BEANS,
                id="1",
                created=at(2010, 5, 6, 8, 1),
                name="Al & Bo C.",
                text="<p>a[b[0]]>c</i> caf\u00e9</p>",
                html="<p>a[b[0]]&gt;c caf\u00e9</p>",
            ),
        ),
        says=(
            "Corrected: text before the XML declaration, ignored (1, line 1)",
            "Corrected: text after the end of the document, ignored (1, line 8)",
            "Corrected: bytes that are not UTF-8, read as Windows-1252 (1, line 5)",
            "Corrected: control characters, which XML does not allow, removed (1, line 5)",
            'Corrected: "]]>" that was not escaped, read as text (1, line 5)',
            'Corrected: "&" that was not escaped, read as text (1, line 5)',
            (
                "Corrected: HTML entities that XML does not define (such as &nbsp;), read as "
                "characters (1, line 5)"
            ),
            (
                "Corrected: times in GMT that are missing, replaced by local times read as UTC "
                "(1, line 5)"
            ),
        ),
    ),
}

REFUSED = {
    "no id": (
        _file(_item("beans", _comment(1, "x", "Ada").replace(">1<", "><", 1))),
        ":4: not a valid id",
    ),
    "no date": (
        _file(_item("beans", _comment(1, "x", "Ada").replace("2010-05-06 07:01:00", ""))),
        ":4: the comment has no date. Write one in <wp:comment_date_gmt>",
    ),
    "cut off": (
        _file(_item("beans", _comment(1, "x", "Ada")))[:-40],
        "the file ends too early. Download or export it again",
    ),
    "two exports in one file": (
        _file(_item("beans", _comment(1, "x", "Ada"))) * 2,
        "a second document begins after the end of the first",
    ),
    "a Disqus export": (b"<disqus/>", "not a WordPress export"),
}

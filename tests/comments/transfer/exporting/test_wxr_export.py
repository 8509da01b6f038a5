"""A WXR export is XML that WordPress's rules accept, and our own importer reads it completely."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from comments.domain import records
from comments.domain.records import Status
from comments.sites import site_settings
from comments.transfer.checking import checked_import
from comments.transfer.formats import disqus, wordpress
from comments.transfer.importing import import_writer
from tests.support import datastores, optional_tools
from tests.support.exporting import site_exports
from tests.support.threads import sample_exports, sample_threads
from tests.support.threads.sample_exports import SCHEME, SECRET

WP = "{http://wordpress.org/export/1.2/}"
DC = "{http://purl.org/dc/elements/1.1/}"
# What WordPress's importer reads from each comment.
FIELDS = (
    "id", "author", "author_email", "author_url", "author_IP", "date", "date_gmt", "content",
    "approved", "type", "parent",
)  # fmt: skip
APPROVED = {
    Status.APPROVED: "1",
    Status.PENDING: "0",
    Status.SPAM: "spam",
    Status.SHADOWED: "spam",
    Status.REJECTED: "trash",
    Status.HIDDEN: "trash",
    Status.RETRACTED: "trash",
}
# The states that our importer makes of these.
READ_BACK = {
    Status.HIDDEN: Status.REJECTED,
    Status.RETRACTED: Status.REJECTED,
    Status.SHADOWED: Status.SPAM,
}


def items(path: Path) -> list[ET.Element]:
    """Check the document's head as WordPress's importer does, and return the posts."""
    root = ET.parse(path).getroot()  # noqa: S314 - we wrote the file
    assert root.tag == "rss"
    (channel,) = root
    assert channel.findtext(f"{WP}wxr_version") == "1.2"
    assert channel.findtext(f"{WP}base_site_url") == "https://garden.example"
    assert [each.tag for each in channel.findall(f"{WP}author/*")] == [
        f"{WP}author_{name}" for name in ("id", "login", "email", "display_name")
    ]
    return channel.findall("item")


def comments(item: ET.Element) -> list[dict[str, str]]:
    found = [
        {name: each.findtext(f"{WP}comment_{name}") or "" for name in FIELDS}
        for each in item.findall(f"{WP}comment")
    ]
    for each in found:
        assert each["type"] == "comment"
        assert each["author_IP"] == ""
        datetime.strptime(each["date_gmt"], "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007
    return found


def test_threads_become_posts_and_comments_keep_their_parents_and_states(
    garden: records.Site, tmp_path: Path
) -> None:
    name = records.ThreadName("garden", "garden.example/roses")
    states = [*Status, Status.APPROVED]
    nodes = [
        sample_threads.node(
            f"text {n}", None if n == 0 else f"text {n - 1}", status, author=f"g:{n}"
        )
        for n, status in enumerate(states)
    ]
    sample_threads.store_imported(name, *nodes)
    path = site_exports.save(tmp_path / "x.xml", "garden", format_="wxr")
    (item,) = items(path)
    assert item.findtext("guid") == "garden.example/roses"
    assert item.findtext(f"{WP}post_type") == "post"
    assert item.findtext(f"{WP}status") == "publish"
    assert item.findtext(f"{WP}comment_status") == "open"
    assert item.findtext(f"{DC}creator") == "flatthread"
    found = comments(item)
    assert [each["id"] for each in found] == [str(n) for n in range(1, len(states) + 1)]
    assert [each["parent"] for each in found] == [str(n) for n in range(len(states))]
    assert [each["approved"] for each in found] == [APPROVED[each] for each in states]
    assert found[0]["author"] == "text 0"


def test_posts_have_the_names_of_their_pages_and_dates_before_their_comments(
    garden: records.Site, tmp_path: Path
) -> None:
    pages = {"": "", "2020/Roses.html": "roses", "a/index.php": "a", "caf%C3%A9": "caf%c3%a9"}
    for page in pages:
        sample_threads.post(
            garden,
            page or "home",
            thread=f"garden.example/{page}",
            title="The same title",
            url=f"https://garden.example/{page}#comments",
        )
    path = site_exports.save(tmp_path / "x.xml", "garden", format_="wxr")
    found = items(path)
    assert {each.findtext("link") or "": each.findtext(f"{WP}post_name") for each in found} == {
        f"https://garden.example/{page}": name for page, name in pages.items()
    }
    dates = [each.findtext(f"{WP}post_date_gmt") or "" for each in found]
    assert len(set(dates)) == len(pages)  # WordPress takes posts with one title and date for one
    assert max(dates) < min(each["date_gmt"] for item in found for each in comments(item))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("the end ]]> of a section ]]]]>", "the end ]]&gt; of a section ]]]]&gt;"),
        ("not a character: \ufffe", "not a character: \ufffd"),
        ("`<b>` & \U0001f600", "<code>&lt;b&gt;</code> &amp; \U0001f600"),
    ],
)
def test_texts_that_xml_cannot_contain_are_escaped_or_replaced(
    garden: records.Site, tmp_path: Path, text: str, read: str
) -> None:
    title = "a ]]> and ]]]]> title & <more>"
    sample_threads.post(
        garden,
        text,
        title=title,
        author=records.Author('A & <B> "C"', "https://a.example/?a=1&b=2", id="g:a"),
    )
    path = site_exports.save(tmp_path / "x.xml", "garden", format_="wxr")
    (item,) = items(path)
    assert item.findtext("title") == title
    (found,) = comments(item)
    assert found["content"] == f"<p>{read}</p>\n"
    assert found["author"] == 'A &amp; &lt;B&gt; "C"'  # WordPress stores names with entities
    assert found["author_url"] == "https://a.example/?a=1&b=2"


LINK = re.compile("</?a( [^>]*)?>")
SUBSTITUTES = ("<p>[no text]</p>", "<p>[deleted]</p>")
Shown = tuple[str, str | None, Status, str, str, datetime]


def shown() -> list[Shown]:
    """Return the stored comments by reading order: name, parent's place, state, HTML, time.

    The HTML is without links, because the importer adds one to each address that is text. An
    export replaces an empty text.
    """
    rows = sample_exports.rows()
    places = {row.id: f"{row.thread} {n}" for n, row in enumerate(rows)}
    return [
        (
            row.author.name or "Guest",
            None if row.reply_to is None else places[row.reply_to],
            READ_BACK.get(row.status, row.status),
            LINK.sub("", row.html) or SUBSTITUTES[row.status is Status.RETRACTED],
            row.author.website,
            row.created.replace(microsecond=0),
        )
        for row in rows
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["disqus/evanlin-189.xml", "wxr/themeunittestdata-33.xml"])
def test_our_own_importer_reads_the_same_comments_from_a_wxr_export(
    new_datastore: Callable[[], datastores.Datastore], tmp_path: Path, name: str
) -> None:
    path = tmp_path / "x.xml"
    found: list[list[Shown]] = []
    for file in (optional_tools.real_export(name), path):
        with new_datastore().connect().context():
            site = site_settings.add(
                "garden", sample_exports.SITE.origins, scheme=SCHEME, now=sample_exports.NOW
            )
            reader = wordpress.read if file == path or name.startswith("wxr") else disqus.read
            with checked_import.plan(reader, file, site=site, scheme=SCHEME, secret=SECRET) as plan:
                import_writer.write(plan, scheme=SCHEME, now=sample_exports.NOW)
            site_exports.save(path, "garden", format_="wxr")
            found.append(shown())
    assert found[0] == found[1]

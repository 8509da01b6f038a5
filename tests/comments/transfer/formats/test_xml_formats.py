"""Both export formats are read correctly, and faults are reported by line."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from comments import errors
from comments.domain.records import Status
from comments.domain.text import imported_html
from comments.transfer import import_source
from comments.transfer.formats import disqus, wordpress

IMPORTS = Path(__file__).parents[3] / "fixtures" / "imports"
Items = Iterator[import_source.Item]


def comments(items: Items) -> dict[str, import_source.SourceComment]:
    return {item.id: item for item in items if isinstance(item, import_source.SourceComment)}


def threads(items: Items) -> dict[str, import_source.SourceThread]:
    return {item.key: item for item in items if isinstance(item, import_source.SourceThread)}


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


def test_a_disqus_post_is_read_with_its_line_author_and_links() -> None:
    post = comments(disqus.read(IMPORTS / "disqus.xml"))["103"]
    assert post == import_source.SourceComment(
        system="disqus",
        id="103",
        line=4,
        thread="1",
        parent="101",
        status=Status.APPROVED,
        created=at(2015, 3, 4, 10, 2),
        name="Bela",
        email="bela@garden.example",
        body="<p>A reply that comes <b>before</b> its parent.</p>",
    )


def test_a_comment_that_disqus_deleted_is_retracted() -> None:
    found = comments(disqus.read(IMPORTS / "disqus.xml"))
    assert found["104"].status is Status.RETRACTED
    assert found["106"].status is Status.SPAM


def test_disqus_threads_have_their_link_id_and_state() -> None:
    found = threads(disqus.read(IMPORTS / "disqus.xml"))
    roses = found["1"]
    assert (roses.link, roses.id, roses.closed) == ("http://garden.example/roses/", "/roses", True)
    assert not found["2"].closed
    assert found["5"].deleted


def test_the_years_1900_and_9999_are_dates() -> None:
    found = comments(disqus.read(IMPORTS / "disqus.xml"))
    assert found["108"].created == at(1900, 1, 1)
    assert found["201"].created == at(9999, 12, 31, 23, 59, 59)


def test_a_wordpress_comment_is_read_with_its_author_and_date() -> None:
    found = comments(wordpress.read(IMPORTS / "wordpress.xml"))
    owner = found["10"]
    assert (owner.line, owner.name, owner.email) == (14, "admin", "owner@garden.example")
    assert (owner.website, owner.parent) == ("https://garden.example/", None)
    assert owner.created == at(2010, 5, 6, 7, 8, 7)
    assert (found["9"].name, found["12"].parent) == ("Al & Bo", "11")


def test_wordpress_line_ends_become_paragraphs_where_there_are_none() -> None:
    found = comments(wordpress.read(IMPORTS / "wordpress.xml"))
    assert found["10"].body == (
        "<p>One line<br>\nand another.</p>\n<p>A second paragraph<script>x</script>.</p>"
    )
    assert found["20"].body == "<p>Between\n\nus.</p>"


def test_a_wordpress_comment_without_a_gmt_date_takes_the_other() -> None:
    assert comments(wordpress.read(IMPORTS / "wordpress.xml"))["13"].created == at(2010, 5, 9)


def test_wordpress_states_become_statuses_and_unknown_ones_are_held() -> None:
    found = comments(wordpress.read(IMPORTS / "wordpress.xml"))
    assert {key: comment.status for key, comment in found.items()} == {
        "9": Status.APPROVED,
        "10": Status.APPROVED,
        "12": Status.APPROVED,
        "13": Status.PENDING,
        "14": Status.SPAM,
        "15": Status.REJECTED,
        "16": Status.PENDING,
        "20": Status.APPROVED,
        "21": Status.SPAM,
    }


def test_pingbacks_and_private_notes_are_left_out() -> None:
    items = list(wordpress.read(IMPORTS / "wordpress.xml"))
    other = [item for item in items if isinstance(item, import_source.OtherItem)]
    assert [(item.id, item.what) for item in other] == [("11", "pingback"), ("17", "order_note")]


def test_wordpress_posts_are_hidden_unless_they_are_public() -> None:
    beans, secret = threads(wordpress.read(IMPORTS / "wordpress.xml")).values()
    assert (beans.link, beans.closed, beans.hidden) == (
        "https://garden.example/beans/",
        True,
        False,
    )
    assert secret.hidden
    assert comments(wordpress.read(IMPORTS / "wordpress.xml"))["20"].thread == secret.key


@pytest.mark.parametrize(
    ("address", "count"), [("http://e.example", 2_100), (f"https://e.example/{'buy-' * 20}", 700)]
)
def test_a_wordpress_comment_with_too_many_addresses_for_links_is_read(
    tmp_path: Path, address: str, count: int
) -> None:
    path = tmp_path / "export.xml"
    text = f"{address}\n" * count
    path.write_bytes(
        (IMPORTS / "wordpress.xml").read_bytes().replace(b"Between\n\nus.", text.encode())
    )
    body = comments(wordpress.read(path))["20"].body
    assert "<a " not in body
    assert imported_html.convert(body).html.count(address) == count


def test_only_elements_in_the_exports_namespace_count(tmp_path: Path) -> None:
    path = tmp_path / "export.xml"
    comment = "<wp:comment><wp:comment_id>1</wp:comment_id></wp:comment>"
    title = "<x:title xmlns:x='http://evil.example/'>no</x:title><title>yes</title>"
    path.write_text(
        "<rss xmlns:wp='http://wordpress.org/export/1.2/'><channel>"
        f"<item xmlns:wp='http://evil.example/'>{title}{comment}</item></channel></rss>"
    )
    assert comments(wordpress.read(path)) == {}
    assert [thread.title for thread in threads(wordpress.read(path)).values()] == ["yes"]


@pytest.mark.parametrize(
    "date", ["", "yesterday", "2015-13-01T00:00:00Z", "0001-01-01T00:00:00+09:00", "1e9"]
)
def test_an_invalid_date_refuses_the_file_with_its_line(date: str) -> None:
    with pytest.raises(errors.BadImport) as caught:
        import_source.moment(Path("x.xml"), 7, date)
    assert (caught.value.line, caught.value.file) == (7, "x.xml")


@pytest.mark.parametrize("raw", ["", "  ", "a\nb", "\u202e", "9" * 201])
def test_an_invalid_id_refuses_the_file_with_its_line(raw: str) -> None:
    with pytest.raises(errors.BadImport) as caught:
        import_source.checked_id(Path("x.xml"), 7, raw)
    assert caught.value.line == 7


def test_a_file_of_the_other_system_is_refused() -> None:
    for read, name in ((disqus.read, "wordpress.xml"), (wordpress.read, "disqus.xml")):
        with pytest.raises(errors.BadImport) as caught:
            list(read(IMPORTS / name))
        assert caught.value.line == 2

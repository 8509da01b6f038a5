"""Test an import's first pass, which needs no store: its report and the comments that it keeps."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import imported_ids
from comments.domain.records import Status, ThreadState
from comments.domain.text import sanitizing
from comments.store.models import comment_rows
from comments.transfer import import_source
from comments.transfer.checking import import_authors, import_plan, import_report
from comments.transfer.formats import generic, wordpress
from comments.transfer.parsing import html_references
from tests.support.threads.sample_exports import (
    NOW,
    ROSES,
    SECRET,
    SITE,
    THREAD,
    notes,
    plan_of,
    planned,
    planned_by,
    post,
    saved,
    written,
)


def test_the_report_counts_the_comments_to_store() -> None:
    with planned("disqus.xml") as plan:
        assert (plan.report.comments, plan.report.threads) == (12, 2)
        assert plan.report.statuses == {"approved": 10, "retracted": 1, "spam": 1}
        assert sum(1 for _ in plan.report.lines()) > 10


def test_two_pages_with_one_path_become_one_thread_that_is_open_if_either_is() -> None:
    with planned("disqus.xml") as plan:
        roses, tulips = plan.threads
        assert roses.name == ROSES
        assert (roses.state, roses.url) == (ThreadState.OPEN, "http://garden.example/roses/")
        assert {node.id for node in roses.nodes} >= {"101", "102"}
        ((line, text),) = notes(plan, import_report.MERGED)
        assert line == 14
        assert "http://garden.example/roses/ (line 14), https://garden.example/roses" in text
        assert tulips.state is ThreadState.CLOSED


def test_a_title_is_plain_text() -> None:
    with planned("disqus.xml") as plan:
        assert plan.threads[0].title == "Roses & thorns"


@pytest.mark.parametrize(
    ("link", "name"),
    [
        ("https://garden.example/caf%e9/", "garden.example/caf%E9"),
        ("https://garden.example/%D6%D0", "garden.example/%D6%D0"),
        ("https://garden.example/%E6%97", "garden.example/%E6%97"),
        ("https://garden.example/100%/", "garden.example/100%25"),
        ("https://garden.example/a%0A", "garden.example/a%0A"),
        ("https://garden.example/?p=%E9", "garden.example/?p=%E9"),
        ("//www.garden.example/a", "www.garden.example/a"),
        ("//tulips/", "garden.example//tulips"),
        ("/100%", "garden.example/100%25"),
    ],
)
def test_a_page_has_the_thread_of_its_address(tmp_path: Path, link: str, name: str) -> None:
    site = msgspec.structs.replace(SITE, query_keys=("p",))
    path = saved(
        tmp_path / "export.xml", f'<thread dsq:id="1"><link>{link}</link></thread>\n', post("1")
    )
    with plan_of(path, site=site) as plan:
        assert [thread.name.id for thread in plan.threads] == [name]


def test_a_thread_without_a_usable_link_is_named_by_its_id_or_left_out() -> None:
    with planned("disqus.xml") as plan:
        assert plan.threads[1].name.id == "tulips"
        assert [line for line, _ in notes(plan, import_report.NO_LINK)] == [24]
        assert [line for line, _ in notes(plan, import_report.NO_NAME)] == [25]
        assert "301" not in written(plan)


def test_comments_of_deleted_and_missing_threads_are_left_out_and_noted() -> None:
    with planned("disqus.xml") as plan:
        assert not written(plan).keys() & {"302", "303"}
        assert notes(plan, import_report.DELETED) == [(26, "http://garden.example/old")]
        assert notes(plan, import_report.NO_THREAD) == [(41, "303, thread 77")]


def test_threads_without_comments_are_not_created() -> None:
    with planned("disqus.xml") as plan:
        assert all("localhost" not in thread.name.id for thread in plan.threads)


def _by(name: str = "", email: str = "", account: str = "", system: str = "disqus") -> str:
    comment = import_source.SourceComment(
        system=system,
        id="1",
        line=1,
        thread="1",
        parent=None,
        status=Status.APPROVED,
        created=NOW,
        name=name,
        body="",
        email=email,
        account=account,
    )
    return import_authors.author_id(SECRET, SITE.id, comment)


def test_authors_are_identified_by_address_then_account_then_name() -> None:
    assert _by("Ada", "ada@garden.example") == _by("A. L.", " Ada@Garden.Example ".strip(), "ada")
    assert _by("Ada", account="ada") == _by("A. L.", account="ada")
    assert _by("Ada  Lovelace") == _by("ada lovelace")
    different = [
        _by("ada"),
        _by("bob"),
        _by(account="ada"),
        _by(account="ada", system="wordpress"),
        _by(email="ada@garden.example"),
        _by("ada", "no address", "bob"),
    ]
    assert len(set(different)) == len(different)
    assert {each[:2] for each in different} == {"i:"}
    assert _by() == _by(" ") == ""


def test_an_authors_id_depends_on_the_site_and_cannot_be_guessed_from_an_address() -> None:
    comment = msgspec.structs.replace(
        import_source.SourceComment("disqus", "1", 1, "1", None, Status.APPROVED, NOW, "Ada", ""),
        email="ada@garden.example",
    )
    ids = {
        import_authors.author_id(secret, site, comment)
        for secret in (SECRET, "another secret of the tests")
        for site in ("garden", "other")
    }
    assert len(ids) == 4


def test_a_retracted_comment_has_no_content_and_no_personal_data() -> None:
    with planned("disqus.xml") as plan:
        gone = written(plan)["104"]
    assert (gone.status, gone.body, gone.html, gone.renderer) == (Status.RETRACTED, "", "", "")
    assert gone.author == records.Author("")


def test_bodies_are_sanitized_and_keep_their_source() -> None:
    with planned("disqus.xml") as plan:
        first = written(plan)["101"]
    assert first.html == "<p>First. z</p>"
    assert first.body.startswith("<p>First.<script>")
    assert first.renderer == sanitizing.SANITISER


def test_a_comment_without_a_name_is_a_guests_and_one_without_a_text_is_kept() -> None:
    with planned("disqus.xml") as plan:
        found = written(plan)
        assert (found["102"].author.name, found["107"].body) == (import_authors.GUEST, "")
        assert len(notes(plan, import_report.NAMELESS)) == 1
        assert [text for _, text in notes(plan, import_report.EMPTY)] == ["107"]


def test_replies_that_cannot_be_placed_become_roots_and_are_noted() -> None:
    with planned("disqus.xml") as plan:
        found = written(plan)
        assert all(found[each].reply_to is None for each in ("108", "109", "201"))
        assert [text for _, text in notes(plan, import_report.ORPHANS)] == ["108 replies to 999"]
        assert [text for _, text in notes(plan, import_report.UNROOTED)] == ["109 replies to 301"]
        assert [text for _, text in notes(plan, import_report.CROSSING)] == ["201 replies to 101"]


def test_a_cycle_is_broken_at_its_earliest_comment() -> None:
    with planned("disqus.xml") as plan:
        found = written(plan)
        assert found["203"].reply_to is None
        assert found["202"].reply_to == found["203"].id
        assert len(notes(plan, import_report.CYCLES)) == 1


def test_a_repeated_id_is_imported_once() -> None:
    with planned("disqus.xml") as plan:
        assert written(plan)["203"].body == "And round."
        assert notes(plan, import_report.OTHER) == [(38, "203, first in line 37")]


def test_a_reply_may_come_before_its_parent_and_its_thread() -> None:
    with planned("disqus.xml") as plan:
        order = [node.id for node in plan.threads[0].nodes]
        assert order == ["108", "101", "103", "104", "105", "102", "106", "107", "109"]


def test_hosts_of_other_sites_are_noted() -> None:
    with planned(
        "disqus.xml", site=msgspec.structs.replace(SITE, origins=("https://x.example",))
    ) as plan:
        hosts = [text for _, text in notes(plan, import_report.ELSEWHERE)]
    assert any(text.startswith("garden.example ") for text in hosts)


def test_a_report_shows_the_first_notes_of_a_kind_and_counts_the_rest(
    export: Callable[..., Path],
) -> None:
    with plan_of(export(THREAD, *(post(str(n), "none") for n in range(25)))) as plan:
        lines = list(plan.report.lines())
    start = lines.index(f"{import_report.ORPHANS}: 25")
    assert lines[start + 1] == "  line 3: 0 replies to none"
    assert lines[start + 21] == "  and 5 more"


def test_notes_that_need_no_action_take_one_line_of_the_report(export: Callable[..., Path]) -> None:
    nameless = [post(str(n), name="") for n in range(25)]
    with plan_of(export(THREAD, *nameless, post("25", message=""))) as plan:
        lines = list(plan.report.lines())
    assert f"{import_report.NAMELESS}: 25, lines 3, 4, 5, ..." in lines
    assert f"{import_report.EMPTY}: 1, line 28" in lines
    assert len(lines) == 4


def test_remarks_are_counted_by_their_text(tmp_path: Path) -> None:
    def read(_: Path) -> Iterator[import_source.Item]:
        for line in range(1, 6):
            yield import_source.LeftOut(line, "IP addresses")
            yield import_source.Corrected(line, "times without a zone\x1b")
        yield import_source.LeftOut(7, "avatars")

    with planned_by(read, tmp_path) as plan:
        assert list(plan.report.lines())[1:] == [
            "Corrected: times without a zone\ufffd (5, lines 1, 2, 3, ...)",
            "Left out: IP addresses (5)",
            "Left out: avatars (1)",
        ]


def test_a_repeated_thread_is_imported_once(export: Callable[..., Path]) -> None:
    with plan_of(export(THREAD, THREAD.replace("roses", "tulips"), post("1"))) as plan:
        assert [thread.name for thread in plan.threads] == [ROSES]
        assert notes(plan, import_report.REPEATED) == [(3, "thread 1, first in line 2")]


def test_an_unusable_title_or_link_is_left_empty(export: Callable[..., Path]) -> None:
    title = "x" * (sanitizing.MAX_HTML + 1)
    thread = THREAD.replace("</link>", f"?it's</link><title>{title}</title>")
    with plan_of(export(thread, post("1"))) as plan:
        assert (plan.threads[0].title, plan.threads[0].url) == ("", "")
        assert plan.threads[0].name == ROSES


def test_the_sites_rules_distinguish_pages(export: Callable[..., Path]) -> None:
    lines = [
        f'<thread dsq:id="{n}"><link>https://garden.example/?p={n}</link></thread>\n' for n in "12"
    ]
    path = export(*lines, post("1"), post("2", thread="2"))
    with plan_of(path) as plan:
        assert [thread.name.id for thread in plan.threads] == ["garden.example/"]
    with plan_of(path, site=msgspec.structs.replace(SITE, query_keys=("p",))) as plan:
        names = [thread.name.id for thread in plan.threads]
        assert names == ["garden.example/?p=1", "garden.example/?p=2"]


def test_references_to_halves_and_controls_are_corrected_but_not_code_in_markdown(
    tmp_path: Path,
) -> None:
    text = "\0a&#8;b `&#8;` &#55357;&#56832;"
    lines = (
        {"id": n, "page": "/a", "time": "2020-01-01T00:00:00Z", "text": text, "format": markup}
        for n, markup in enumerate(("html", "markdown", "plain"), start=1)
    )
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    with planned_by(generic.read, path) as plan:
        texts = [each.html for _, each in sorted(written(plan).items())]
        assert texts == [
            "ab `` \U0001f600",
            "<p>a\ufffdb <code>&amp;#8;</code> \U0001f600</p>\n",
            "<p>a&amp;#8;b `&amp;#8;` &amp;#55357;&amp;#56832;</p>",
        ]
        assert list(plan.report.lines())[3:] == [
            f"Corrected: {import_report.NUL} (3, lines 1, 2, 3)",
            f"Corrected: {html_references.PAIRS} (2, lines 1, 2)",
            f"Corrected: {html_references.CONTROL} (2, lines 1, 1)",
        ]


def test_wordpress_comments_keep_every_type_that_people_write(tmp_path: Path) -> None:
    types = ["wpdiscuz_sticky", "question", "", "Pingback", "webmention", "action_log", "note"]
    comments = "".join(
        f"<wp:comment><wp:comment_id>{n}</wp:comment_id><wp:comment_parent>{n - 1}"
        "</wp:comment_parent><wp:comment_date_gmt>2020-01-01 00:00:00</wp:comment_date_gmt>"
        f"<wp:comment_content>x</wp:comment_content><wp:comment_type>{each}</wp:comment_type>"
        "<wp:comment_approved>1</wp:comment_approved></wp:comment>"
        for n, each in enumerate(types, start=1)
    )
    path = tmp_path / "wordpress.xml"
    path.write_text(
        '<rss xmlns:wp="http://wordpress.org/export/1.2/"><channel><item>'
        f"<link>https://garden.example/a</link>{comments}</item></channel></rss>"
    )
    with planned_by(wordpress.read, path) as plan:
        found = written(plan)
        assert {number: each.reply_to for number, each in found.items()} == {
            "1": None,
            "2": found["1"].id,
            "3": found["2"].id,
        }
        left_out = "4 (1 Pingback, 1 webmention, 1 action_log, 1 note)"
        assert f"{import_report.OTHER_ITEMS}: {left_out}, lines 1, 1, 1, ..." in list(
            plan.report.lines()
        )


def test_wordpress_replies_to_pingbacks_become_roots() -> None:
    with planned("wordpress.xml", wordpress.read) as plan:
        assert written(plan)["12"].reply_to is None
        assert [text for _, text in notes(plan, import_report.OTHER_ITEMS)] == [
            "pingback",
            "order_note",
        ]
        assert [text for _, text in notes(plan, import_report.UNROOTED)] == ["12 replies to 11"]
        summed = f"{import_report.OTHER_ITEMS}: 2 (1 pingback, 1 order_note), lines 30, 36"
        assert summed in list(plan.report.lines())


def test_comments_of_private_pages_are_held() -> None:
    with planned("wordpress.xml", wordpress.read) as plan:
        found = written(plan)
        assert (found["20"].status, found["21"].status) == (Status.PENDING, Status.SPAM)
        assert len(notes(plan, import_report.HIDDEN)) == 1


def test_the_report_says_what_became_of_pages_that_are_not_public(tmp_path: Path) -> None:
    item = (
        "<item><link>https://garden.example/{0}</link><wp:status>trash</wp:status><wp:comment>"
        "<wp:comment_id>{0}</wp:comment_id><wp:comment_author_IP>192.0.2.1</wp:comment_author_IP>"
        "<wp:comment_date_gmt>2020-01-01 00:00:00</wp:comment_date_gmt>"
        "<wp:comment_approved>{1}</wp:comment_approved></wp:comment></item>\n"
    )
    path = tmp_path / "wordpress.xml"
    path.write_text(
        '<rss xmlns:wp="http://wordpress.org/export/1.2/"><channel>\n'
        f"{item.format(1, 'post-trashed')}{item.format(2, 1)}</channel></rss>"
    )
    with planned_by(wordpress.read, path) as plan:
        assert notes(plan, import_report.UNCHANGED) == [(2, "https://garden.example/1")]
        assert notes(plan, import_report.HIDDEN) == [(3, "https://garden.example/2")]
        assert plan.report.statuses == {"pending": 1, "rejected": 1}
        assert "Left out: IP addresses (2)" in list(plan.report.lines())


def test_dates_that_cannot_be_right_are_reported(export: Callable[..., Path]) -> None:
    dates = ["0001-01-01T00:00:00Z", "1990-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]
    posts = [post(f"{n}", created=each) for n, each in enumerate(dates)]
    with plan_of(export(THREAD, *posts)) as plan:
        assert [line for line, _ in notes(plan, import_report.EARLY)] == [3]
        assert [line for line, _ in notes(plan, import_report.LATE)] == [5]


def test_a_page_of_several_threads_is_named_once(export: Callable[..., Path]) -> None:
    threads = [THREAD.replace('id="1"', f'id="{n}"') for n in (1, 2)]
    with plan_of(export(*threads, post("1"), post("2", thread="2"))) as plan:
        ((_, text),) = notes(plan, import_report.MERGED)
        assert text == "garden.example/roses: https://garden.example/roses (lines 2, 3)"


def test_an_invalid_website_is_dropped_and_owners_keep_their_names() -> None:
    with planned("wordpress.xml", wordpress.read) as plan:
        found = written(plan)
        assert (found["9"].author.website, found["10"].author.name) == ("", "admin")
        assert found["10"].author.website == "https://garden.example/"
        assert [text.partition(":")[0] for _, text in notes(plan, import_report.WEBSITES)] == ["9"]


@pytest.mark.parametrize(
    "bad",
    [
        post("2", created="soon"),
        post(" "),
        post("2", message="<b>" * (sanitizing.MAX_TAGS + 1)),
        post("2", message="x" * (sanitizing.MAX_HTML + 1)),
        "<post>\n",
        "<!DOCTYPE x>\n",
    ],
)
def test_one_bad_comment_refuses_the_file_with_its_line(
    export: Callable[..., Path], bad: str
) -> None:
    path = export(THREAD, post("1"), bad)
    with pytest.raises(errors.BadImport) as caught:
        plan_of(path)
    assert caught.value.line in {4, 5}
    assert str(path) in caught.value.message


def test_a_file_with_too_many_comments_is_refused(
    export: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_plan, "MAX_COMMENTS", 2)
    with pytest.raises(errors.BadImport) as caught:
        plan_of(export(THREAD, post("1"), post("2"), post("3")))
    assert caught.value.line == 5


def test_what_becomes_a_link_or_text_is_counted_by_comment(export: Callable[..., Path]) -> None:
    image = "<img src=https://i.example/a.png alt=cat><img src=//i.example/b.png>"
    with plan_of(
        export(
            THREAD,
            post("1", message=image),
            post("2", message=f"{image}<iframe src=https://v.example title=film></iframe>"),
            post("3", message="<a href=mailto:a@b.example>write</a><script>x</script>"),
            post("4", message="<b>plain</b>"),
        )
    ) as plan:
        found = written(plan)
        lines = list(plan.report.lines())
    assert re.findall('href="(.*?)"', found["1"].html) == [
        "https://i.example/a.png", "https://i.example/b.png"
    ]  # fmt: skip
    assert 'href="https://v.example"' in found["2"].html
    assert found["3"].html == "write"
    assert f"{import_report.IMAGES}: 2, lines 3, 4" in lines
    assert f"{import_report.EMBEDS}: 1, line 4" in lines
    assert f"{import_report.UNLINKED}: 1, line 5" in lines
    assert f"{import_report.REMOVED}: 1, line 5" in lines


def test_comment_ids_are_stable() -> None:
    # If this value changed, a repeated import would store every comment a second time.
    assert imported_ids.comment_id("garden", "disqus", "101") == "2ulufdhehb6oevol6lpj6wfqky"
    digest = hashlib.sha256(b"\0\0\0\x06garden\0\0\0\x06disqus\0\0\0\x03101").digest()
    assert imported_ids.comment_id("garden", "disqus", "101") == comment_rows.comment_id(digest)
    assert imported_ids.comment_id("a", "bc", "d") != imported_ids.comment_id("ab", "c", "d")


def test_a_report_contains_no_escape_sequences_from_the_file(export: Callable[..., Path]) -> None:
    link = "https://garden.example/\x9b2Jx\ny" + "z" * 500
    thread = f'<thread dsq:id="1"><link>{link}</link><isDeleted>true</isDeleted></thread>\n'
    with plan_of(export(thread, post("1"))) as plan:
        lines = list(plan.report.lines())
    assert "\ufffd2Jx" in "".join(lines)
    assert all(line.isprintable() and len(line) < 400 for line in lines)


@pytest.mark.parametrize("kept", [1, import_authors.MOST])
def test_a_fault_of_an_author_is_noted_for_each_of_the_authors_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(import_authors, "MOST", kept)
    names = ["&#8203;", "Ada", "&#8203;", "Bob", "Ada"]
    posts = [post(f"{n}", name=name) for n, name in enumerate(names, start=1)]
    with plan_of(saved(tmp_path / "export.xml", THREAD, *posts)) as plan:
        assert [line for line, _ in notes(plan, import_report.NAMELESS)] == [3, 5]
        found = written(plan)
    assert [found[f"{n}"].author.name for n in range(1, 6)] == [
        "Guest",
        "Ada",
        "Guest",
        "Bob",
        "Ada",
    ]
    assert found["2"].author == found["5"].author != found["4"].author

"""Test what the commands print, what they refuse, and their exit codes."""

import gc
import json
import re
from pathlib import Path
from typing import Any

import click.testing
import flask
import pytest
from flask.testing import FlaskClient

from comments import config, errors
from comments.domain import records, site_options, sorthash
from comments.events import dispatcher
from comments.jobs import wiring
from comments.jobs.importers import import_journal
from comments.jobs.integrity import repair
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.tree import ordered_query
from tests.support.histories import counter_oracle
from tests.support.threads import raw_changes, sample_threads

FIXTURE = """<?xml version="1.0" encoding="utf-8"?>
<disqus xmlns="http://disqus.com" xmlns:dsq="http://disqus.com/disqus-internals">
<thread dsq:id="1"><id/><link>https://example.com/page/</link><title>Page</title>
<createdAt>2011-01-01T00:00:00Z</createdAt><isClosed>false</isClosed><isDeleted>false</isDeleted>
</thread>
<post dsq:id="11"><message><![CDATA[<p>first</p>]]></message>
<createdAt>2011-01-02T00:00:00Z</createdAt><isDeleted>false</isDeleted><isSpam>false</isSpam>
<author><name>Ann</name><isAnonymous>true</isAnonymous></author><thread dsq:id="1"/></post>
<post dsq:id="12"><message><![CDATA[<p>answer</p>]]></message>
<createdAt>2011-01-03T00:00:00Z</createdAt><isDeleted>false</isDeleted><isSpam>false</isSpam>
<author><name>Bob</name><isAnonymous>true</isAnonymous></author><thread dsq:id="1"/>
<parent dsq:id="11"/></post>
</disqus>
"""


NAME = records.ThreadName("demo", "page")


@pytest.fixture
def run(app: flask.Flask) -> "Runner":
    return Runner(app)


class Runner:
    """A runner that executes commands as `flask --app main ...` does."""

    def __init__(self, app: flask.Flask) -> None:
        self._runner = app.test_cli_runner()

    def __call__(self, *arguments: str | Path) -> click.testing.Result:
        return self._runner.invoke(args=[str(argument) for argument in arguments])


def test_a_site_moves_to_another_scheme(
    run: Runner, site: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        shallow = sample_threads.shaped(site, sorthash.Scheme(levels=2))
        sample_threads.grow(shallow, {"a": {"b": {"c": {}}}})
    moved = run("site", "rescheme", "demo", "--levels", "5", "--digits", "0123456789")
    assert moved.exit_code == 0
    assert moved.stdout == (
        "demo has 5 levels, width 2 and digits 0123456789. Comments moved in 1 of 1 thread; "
        "1 comment got a new slug.\n"
    )
    with open_store.context():
        assert [row.sort_hash for row in ordered_query.thread(NAME)] == ["00", "0001", "000101"]
    assert "in 0 of 1 thread" in run("site", "rescheme", "demo", "--levels", "5").stdout
    with open_store.context():
        assert site_settings.get("demo").digits == "0123456789"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (("--levels", "0"), "levels"),
        (("--levels", "101"), "levels"),
        (("--levels", "3", "--width", "9"), "width"),
        (("--levels", "3", "--digits", "BA"), "digits"),
        (("--levels", "3", "--digits", "é"), "digits"),
    ],
)
def test_a_scheme_that_cannot_be_is_refused(
    run: Runner, site: records.Site, options: tuple[str, ...], field: str
) -> None:
    refused = run("site", "rescheme", "demo", *options)
    assert refused.exit_code == 1
    assert refused.stderr.splitlines()[-1].startswith(f"Error: {field} must be")


def test_a_thread_that_keeps_its_scheme_is_named(
    run: Runner, site: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        for number in range(30):
            sample_threads.post(site, str(number))
    kept = run("site", "rescheme", "demo", "--levels", "3", "--digits", "01", "--width", "1")
    assert kept.exit_code == 1
    assert kept.stdout.splitlines()[1].startswith("page keeps its scheme: A comment has more")
    assert run("site", "rescheme", "nobody", "--levels", "3").exit_code == 1


@pytest.fixture
def export(tmp_path: Path) -> Path:
    file = tmp_path / "export.xml"
    file.write_text(FIXTURE, encoding="utf-8")
    return file


def test_a_site_is_added_listed_and_changed(run: Runner, store: connection.Store) -> None:
    added = run("site", "add", "blog", "--origin", "https://blog.example")
    assert added.output == "Added blog (https://blog.example).\n"
    changed = run("site", "set", "blog", "--origin", "https://new.example", "--query-key", "p")
    assert "Changed blog (https://new.example)." in changed.output
    both = "https://new.example, http://localhost:8000"
    for _ in range(2):
        changed = run("site", "set", "blog", "--add-origin", "http://localhost:8000")
        assert f"Changed blog ({both})." in changed.output
    assert run("site", "set", "blog", "--add-origin", "localhost").exit_code == 1
    run("site", "set", "blog", "--origin", "https://new.example")
    run("site", "set", "blog", "--keep-trailing-slash")
    run("site", "set", "blog", "--cdn-seconds", "5")
    assert run("site", "list").output == "blog\thttps://new.example\n"
    site = site_settings.get("blog")
    assert (site.query_keys, site.keep_trailing_slash) == (("p",), True)
    assert site.cdn_seconds == 5
    run("site", "set", "blog", "--freshness", "7")
    assert (site_settings.get("blog").freshness, site_settings.get("blog").cdn_seconds) == (7, 5)
    run("site", "set", "blog", "--category", "Sport", "--category", "News")
    assert site_settings.get("blog").categories == ("news", "sport")
    assert site_settings.get("blog").cdn_seconds == 5
    run("site", "set", "blog", "--category", "", "--query-key", "")
    assert (site_settings.get("blog").categories, site_settings.get("blog").query_keys) == ((), ())


def test_the_options_of_a_site_are_changed(
    run: Runner, store: connection.Store, site: records.Site
) -> None:
    changed = run("site", "set", "demo", "--no-votes", "--no-website", "--order", "best")
    assert changed.output == "Changed demo. This takes effect everywhere within a minute.\n"
    run("site", "set", "demo", "--image-origin", "https://img.example", "--live", "0")
    run("site", "set", "demo", "--theme", "dark", "--language", "en", "--no-moderation", "--forms")
    assert site_settings.get("demo").options == site_options.SiteOptions(
        votes=False, website=False, order="best", images=("https://img.example",), live=0,
        theme="dark", language="en", moderation=False, forms=True,
    )  # fmt: skip
    run("site", "set", "demo", "--votes", "--no-guests", "--language", "", "--image-origin", "")
    found = site_settings.get("demo").options
    assert (found.votes, found.guests, found.language, found.images) == (True, False, "", ())
    assert site_settings.get("demo").origins == site.origins
    refused = run("site", "set", "demo", "--live", "5")
    assert refused.exit_code == 1
    assert "live must be 0 (off) or between 10 and 3,600." in refused.output
    assert run("site", "set", "demo", "--order", "random").exit_code == 2
    assert "Nothing to change" in run("site", "set", "demo").output


def test_the_categories_of_a_thread_are_changed(
    run: Runner, store: connection.Store, site: records.Site
) -> None:
    sample_threads.grow(site, sample_threads.TREE)
    name = sample_threads.name_of(site)
    changed = run("thread", "set", "demo", "page", "--category", "Sport", "--category", "news")
    assert changed.exit_code == 0
    assert changed.output.splitlines() == [
        "Moved 8 comments.",
        "title\t\tthe oldest approved comment",
        "url\t\tthe oldest approved comment",
        "categories\tnews, sport\ta moderator",
    ]
    assert reads.get(comment_rows.thread_key(name)).categories == ["news", "sport"]
    removed = run("thread", "set", "demo", "page", "--no-category").output
    assert removed.startswith("Moved 8 comments.\n")
    assert reads.get(comment_rows.thread_key(name)).categories == []
    titled = run("thread", "set", "demo", "page", "--title", "Own", "--inherit", "categories")
    assert titled.output.startswith("Moved 0 comments.\ntitle\tOwn\ta moderator\n")
    assert reads.get(comment_rows.thread_key(name)).title == "Own"


def test_statistics_are_shown(run: Runner, store: connection.Store, site: records.Site) -> None:
    sample_threads.grow(
        sample_threads.filing(site, "news"), sample_threads.TREE, categories=("news",), title="=1+1"
    )
    dispatcher.deliver(counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS)
    assert run("stats", "categories", "demo", "--format", "csv").output == (
        "category,day,comments,commenters,pending,spam,rejected,retracted\nnews,,8,8,0,0,0,0\n"
    )
    assert run("stats", "site", "demo").output.splitlines()[1].split() == list("8800") + ["0"] * 2
    (day,) = json.loads(run("stats", "days", "demo", "--format", "json").output)
    assert (day["day"], day["comments"], day["commenters"]) == ("2026-01-02", 8, 8)
    options = ["--all", "--since", "2026-01-02", "--until", "2026-01-02"]
    assert run("stats", "days", "demo", *options).output.count("2026-01-02") == 2
    assert run("stats", "days", "demo", "--category", "News").output.count("2026-01-02") == 1
    assert run("stats", "days", "demo", "--since", "2026-01-03").output.count("\n") == 1
    assert run("stats", "commenters", "demo", "page").output.count("g:") == 8
    threads = run("stats", "threads", "demo", "g:2.1", "--format", "csv")
    assert threads.output == "thread,title,comments\npage,'=1+1,1\n"


def test_statistics_of_nested_categories_are_shown(
    run: Runner, store: connection.Store, site: records.Site
) -> None:
    filed = sample_threads.filing(site, "news", "sport/football")
    for number, category in enumerate(["news", "sport/football", "sport/football"]):
        sample_threads.post(
            filed, f"{number}", thread=category[:4], categories=(category,),
            author=sample_threads.author("ann" if number else "bob"),
        )  # fmt: skip
    dispatcher.deliver(counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS)
    under = run("stats", "categories", "demo", "--under", "Sport", "--format", "csv").output
    assert [line.split(",")[:4] for line in under.splitlines()[1:]] == [
        ["sport", "", "2", "1"],
        ["sport/football", "", "2", "1"],
    ]
    assert json.loads(
        run("stats", "categories", "demo", "--author", "g:bob", "--format", "json").output
    ) == [{"category": "news", "comments": 1}]
    assert run("stats", "commenters", "demo", "--category", "sport").output.splitlines()[1:] == [
        "g:ann   2"
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stats", "site", "nobody"], "There is no site nobody."),
        (["stats", "days", "demo", "--category", "a//b"], "The name of a category must"),
        (["stats", "days", "demo", "--category", "a", "--all"], "cannot be combined"),
        (["stats", "categories", "demo", "--under", "a/b/c/d"], "must have at most 3 parts"),
        (["stats", "categories", "demo", "--under", "a", "--author", "g:a"], "cannot be combined"),
        (["stats", "commenters", "demo"], "Enter either a thread or --category."),
        (["stats", "commenters", "demo", "page", "--category", "a"], "Enter either a thread or"),
        (
            ["stats", "days", "demo", "--since", "2026-02-01", "--until", "2026-01-01"],
            "since must not be after until.",
        ),
        (["thread", "set", "demo", "page", "--category", "a//b"], "The name of a category must"),
        (["thread", "set", "demo", "page", "--category", "a"], "There is no thread page."),
        (["thread", "set", "nobody", "page", "--category", "a"], "There is no site nobody."),
        (["thread", "set", "demo", "page"], "Nothing to change. Use --title"),
        (
            ["thread", "set", "demo", "page", "--category", "a", "--no-category"],
            "--category and --no-category",
        ),
        (
            ["site", "set", "demo", "--query-key", "a b"],
            '"a b" is not the name of a query parameter.',
        ),
        (
            ["site", "add", "Blog", "--origin", "https://x.example"],
            "site must be 1 to 63 characters long",
        ),
        (["site", "add", "blog", "--origin", "x.example"], "x.example is not an origin"),
        (["site", "add", "demo", "--origin", "https://x.example"], "The site demo already exists."),
        (["site", "set", "nobody", "--keep-trailing-slash"], "There is no site nobody."),
        (["site", "set", "demo", "--cdn-seconds", "61"], "cdn_seconds must be between 0 and 60."),
        (["site", "set", "demo", "--cdn-seconds", "-1"], "cdn_seconds must be between 0 and 60."),
        (["site", "set", "demo", "--freshness", "61"], "freshness must be between 0 and 60."),
        (["site", "set", "demo", "--freshness", "-1"], "freshness must be between 0 and 60."),
        (["site", "set", "demo", "--category", "a//b"], "The name of a category must"),
        (["site", "set", "demo"], "Nothing to change for demo."),
        (["repair", "--site", "nobody"], "There is no site nobody."),
        (["stats", "threads", "demo", "\udcff"], "author contains bytes that are not valid UTF-8."),
        (
            ["stats", "audience", "demo", "--every", "thread:\udcff"],
            "audiences.audience.all[0].thread contains characters that are not allowed",
        ),
    ],
)
def test_a_refusal_is_one_clear_line_and_exit_code_1(
    run: Runner, site: records.Site, arguments: list[str], message: str
) -> None:
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert message in refused.output
    assert refused.output.count("\n") == 1


def test_an_import_stores_the_file_once(
    run: Runner, site: records.Site, store: connection.Store, export: Path
) -> None:
    first = run("import", "disqus", export, "--site", "demo")
    assert first.exit_code == 0
    assert "Added 2 comments in 1 thread; 0 existed already.\n" in first.output
    assert "within 7 minutes. To compact them now, run `compact demo --wait`" in first.output
    assert first.output.endswith("open /?site=demo&thread=example.com%2Fpage on the server.\n")
    again = run("import", "disqus", export, "--site", "demo")
    assert "Added 0 comments in 1 thread; 2 existed already.\n" in again.output
    assert "pages fast" not in again.output
    assert sample_threads.listed(site, "example.com/page") == ["<p>first</p>", "<p>answer</p>"]


def test_garbage_is_collected_rarely_during_an_import_only(
    run: Runner, site: records.Site, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, deliver = gc.get_threshold(), dispatcher.deliver
    during: list[int] = []

    def delivered(*given: Any, **more: Any) -> dispatcher.DeliveryCounts:
        during.append(gc.get_threshold()[0])
        return deliver(*given, **more)

    monkeypatch.setattr(dispatcher, "deliver", delivered)
    assert run("import", "disqus", export, "--site", "demo").exit_code == 0
    assert max(during) > before[0]
    assert gc.get_threshold() == before
    assert run("import", "disqus", export, "--site", "unknown").exit_code == 1
    assert gc.get_threshold() == before


def test_an_import_stores_its_progress(
    run: Runner, open_store: connection.Store, site: records.Site, export: Path
) -> None:
    run("import", "disqus", export, "--site", "demo", "--dry-run")
    with open_store.context():
        assert import_journal.of("demo") == []
    for _ in range(2):
        run("import", "disqus", export, "--site", "demo")
        with open_store.context():
            (found,) = import_journal.of("demo")
        assert (found.system, found.file, found.comments) == ("disqus", "export.xml", 2)
        assert (found.seen, found.added) == (2, 2)


def test_a_sites_numbers_include_an_import_when_it_ends(
    run: Runner, site: records.Site, export: Path
) -> None:
    run("import", "disqus", export, "--site", "demo")
    shown = run("stats", "site", "demo", "--format", "json")
    (numbers,) = json.loads(shown.output)
    assert (numbers["comments"], numbers["commenters"]) == (2, 2)
    assert run("recount").output == "0 differences corrected.\n"


def test_a_dry_run_stores_nothing(
    run: Runner, site: records.Site, store: connection.Store, export: Path
) -> None:
    checked = run("import", "disqus", export, "--site", "demo", "--dry-run")
    assert checked.exit_code == 0
    assert "2 comments in 1 thread." in checked.output
    assert checked.output.endswith("Dry run: nothing was stored.\n")
    assert list(repair.threads("demo")) == []


def test_a_refusal_names_the_option_and_its_range(run: Runner, site: records.Site) -> None:
    for arguments, said in (
        (("site", "set", "demo", "--moderator", "nobody"), "moderators must be one e-mail address"),
        (("budget", "set", "demo", "writes", "9" * 30), "writes must be between 0 and "),
        (
            ("post-limits", "set", "demo", "same_texts", "9" * 30),
            "a whole number of up to 9 digits",
        ),
    ):
        refused = run(*arguments)
        assert refused.exit_code == 1
        assert said in refused.output


def test_a_dry_run_refuses_an_import_that_cannot_be_stored(
    run: Runner, site: records.Site, open_store: connection.Store, export: Path
) -> None:
    run("import", "disqus", export, "--site", "demo")
    moved = export.with_name("moved.xml")
    moved.write_text(FIXTURE.replace("/page/", "/moved/"), encoding="utf-8")
    for options in (("--dry-run",), ()):
        refused = run("import", "disqus", moved, "--site", "demo", *options)
        assert refused.exit_code == 1
        assert "is already stored in" in refused.output
        assert "into different sites." in refused.output
    with open_store.context():
        assert [each.file for each in import_journal.of("demo")] == ["export.xml"]


def test_a_damaged_file_is_refused_with_its_line_and_stores_nothing(
    run: Runner, site: records.Site, store: connection.Store, export: Path
) -> None:
    export.write_text(FIXTURE.replace("</disqus>", "<thread></disqus>"), encoding="utf-8")
    refused = run("import", "disqus", export, "--site", "demo")
    assert refused.exit_code == 1
    assert f"{export}:13:" in refused.output
    assert list(repair.threads("demo")) == []


@pytest.mark.parametrize("options", [(), ("--dry-run",)], ids=["import", "dry run"])
@pytest.mark.parametrize("system", ["disqus", "wordpress"])
def test_an_unsupported_encoding_is_reported_in_one_line_and_stores_nothing(
    run: Runner,
    site: records.Site,
    store: connection.Store,
    export: Path,
    system: str,
    options: tuple[str, ...],
) -> None:
    text = re.sub(r"\A<\?xml.*?\?>", "", FIXTURE).strip()
    export.write_text(f'<?xml version="1.0" encoding="utf-7"?>\n{text}', encoding="utf-7")
    refused = run("import", system, export, "--site", "demo", *options)
    assert refused.exit_code == 1
    assert isinstance(refused.exception, SystemExit)
    assert refused.output.count("\n") == 1
    assert f'{export}:1: the encoding "utf-7" is not supported: convert' in refused.output
    assert list(repair.threads("demo")) == []
    assert import_journal.of("demo") == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["import", "disqus", "no-such-file.xml", "--site", "demo"],
        ["import", "livejournal", "x.xml", "--site", "demo"],
        ["import", "disqus"],
        ["site", "add", "blog"],
    ],
)
def test_wrong_usage_is_exit_code_2(run: Runner, arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_a_rebuild_brings_a_raw_change_to_readers(
    run: Runner, site: records.Site, client: FlaskClient, store: connection.Store
) -> None:
    row = sample_threads.post(site, "1")
    sample_threads.post(site, "2", thread="other")
    run("compact")
    raw_changes.comment(row.id, html="<p>other</p>")
    page = "/api/v1/sites/demo/comments?thread=page"
    assert "other" not in client.get(page).text
    done = run("thread", "rebuild", "demo", "page").output
    assert done.startswith("Rebuilt 1 thread; 1 still to be cleaned up.\n")
    assert "<p>other</p>" in client.get(page).text
    assert run("thread", "rebuild", "demo").output.startswith("Rebuilt 2 threads; ")
    for refused in (run("thread", "rebuild", "demo", "never"), run("thread", "rebuild", "never")):
        assert (refused.exit_code, refused.output.count("\n")) == (1, 1)


def test_recount_refuses_unknown_sites_and_threads(run: Runner, site: records.Site) -> None:
    for arguments in (["never"], ["demo", "never"], ["never", "page"]):
        refused = run("recount", *arguments)
        assert refused.exit_code == 1
        assert refused.output.startswith("Error: ")


def test_a_store_that_does_not_answer_is_reported_in_one_line(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> list[records.Site]:
        raise errors.Overloaded("the store did not answer in time")

    monkeypatch.setattr(site_settings, "every", fail)
    refused = run("site", "list")
    assert refused.exit_code == 1
    assert refused.output == (
        "Error: The service is busy. Try again in 2 seconds. "
        "Reason: the store did not answer in time.\n"
    )


def test_the_commands_use_the_applications_settings(
    app: flask.Flask, run: Runner, settings: config.Settings, store: connection.Store
) -> None:
    run("site", "add", "blog", "--origin", "https://blog.example")
    assert site_settings.get("blog").digits == settings.scheme.digits


def test_errors_contain_no_escape_sequences_of_a_file(
    app: flask.Flask, garden: records.Site, tmp_path: Path
) -> None:
    file = tmp_path / "comments.csv"
    file.write_text("page,\x1b]0;title\x07,text\n")
    shown = app.test_cli_runner().invoke(
        args=["import", "generic", str(file), "--site", "garden"], color=True
    )
    assert shown.exit_code == 1
    assert "]0;title" in shown.output
    assert not {"\x1b", "\x07"} & set(shown.output)

"""The commands of a site add, list, change and delete it, and move it to another scheme."""

import re
from datetime import UTC, datetime

import flask
import pytest

from comments import app as apps
from comments import config
from comments.domain import records, site_options
from comments.domain.ids import sorthash
from comments.sites import page_check, site_settings, site_setup
from comments.store import connection
from comments.tree.lists import ordered_query
from tests.comments.cli.conftest import Runner
from tests.support import loopback_servers
from tests.support.threads import sample_threads

NAME = records.ThreadName("demo", "page")


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


def test_a_page_is_checked_as_in_the_console(
    run: Runner, store: connection.Store, site: records.Site
) -> None:
    unset = run("site", "check", "demo", "/post")
    assert (unset.exit_code, "Set PUBLIC_URL" in unset.output) == (1, True)
    settings = config.Settings(secret="s" * 32, public_url="https://comments.example")
    run = Runner(apps.create_app(settings, store))
    with loopback_servers.receiver(certificate="blog.example") as page:
        page_check.OUTBOUND.put(store, loopback_servers.client(page.port))
        origin = f"https://blog.example:{page.port}"
        site_settings.change("demo", origins=[origin])
        page.answer = b"<p>no script</p>"
        wrong = run("site", "check", "demo", "/post")
        assert wrong.exit_code == 1
        assert wrong.output.startswith("The page does not contain the script.")
        page.answer = (
            b'<div id="flatthread" data-site="demo"></div>'
            b'<script src="https://comments.example/widget/flatthread.js"></script>'
        )
        sound = run("site", "check", "demo", f"{origin}/post")
        assert (sound.exit_code, sound.output.count("\n")) == (0, 1)
    assert run("site", "check", "demo", "").exit_code == 1


def test_the_options_of_a_site_are_changed(
    run: Runner, store: connection.Store, site: records.Site
) -> None:
    changed = run("site", "set", "demo", "--no-votes", "--no-website", "--order", "best")
    when = "at once" if store.tells_versions else "within 3 seconds"
    told = f"Changed demo. New comments follow this {when}, pages within a minute.\n"
    assert changed.output == told
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


def test_the_commands_use_the_applications_settings(
    app: flask.Flask, run: Runner, settings: config.Settings, store: connection.Store
) -> None:
    run("site", "add", "blog", "--origin", "https://blog.example")
    assert site_settings.get("blog").digits == settings.scheme.digits


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


def test_a_site_is_deleted_and_taken_back(
    run: Runner, store: connection.Store, site: records.Site
) -> None:
    sample_threads.post(site, "hello")
    deleted = run("site", "delete", "demo", "--yes")
    assert re.match(
        r"demo is deleted, can be undeleted until \d{4}-\d\d-\d\d \d\d:\d\d UTC\. New comments",
        deleted.output,
    )
    assert "deleted, can be undeleted until" in run("site", "list").output
    assert "There is no site demo." in run("site", "set", "demo", "--no-votes").output
    assert "There is no site demo." in run("site", "delete", "demo", "--yes").output
    assert run("site", "undelete", "demo").output.startswith("demo is back.")
    assert run("site", "list").output == f"demo\t{' '.join(site.origins)}\n"
    assert site_settings.get("demo") == site


def test_a_site_is_deleted_only_after_its_id_was_typed(
    run: Runner, store: connection.Store, site: records.Site
) -> None:
    refused = run.answering("yes\n", "site", "delete", "demo")
    assert refused.exit_code == 1
    assert "This is not the id. Nothing was changed." in refused.output
    assert site_settings.is_active("demo")
    assert run.answering("demo\n", "site", "delete", "demo").exit_code == 0
    assert run.answering("demo-2\n", "site", "erase", "demo").exit_code == 1
    assert not site_settings.is_being_erased("demo")


def test_a_deleted_site_is_erased_at_once(
    run: Runner, store: connection.Store, site: records.Site
) -> None:
    sample_threads.post(site, "hello")
    kept = run("site", "erase", "demo", "--yes")
    assert (kept.exit_code, "The site demo is not deleted." in kept.output) == (1, True)
    run("site", "delete", "demo", "--yes")
    erased = run("site", "erase", "demo", "--yes")
    assert re.match(r"Erased \d+ rows of demo\. In 15 minutes, ", erased.output)
    assert "being erased" in run("site", "list").output
    assert "cannot be taken back" in run("site", "undelete", "demo").output
    assert run("site", "erase", "nobody", "--yes").exit_code == 1


def test_origins_that_are_not_allowed_are_shown(
    run: Runner, store: connection.Store, site: records.Site
) -> None:
    now = datetime.now(UTC)
    site_setup.note(site, "https://elsewhere.example", now=now)
    run("site", "set", "demo", "--title", "The Garden")
    (own,) = site.origins
    shown = run("site", "show", "demo").output
    assert shown == (
        f"demo\tThe Garden\nallowed\t{own}\n"
        f"not allowed\thttps://elsewhere.example\t{now:%Y-%m-%d %H:%M} UTC\n"
    )
    run("site", "set", "demo", "--add-origin", "https://elsewhere.example")
    assert "not allowed" not in run("site", "show", "demo").output


def test_a_site_gets_a_name_and_loses_it(
    run: Runner, store: connection.Store, site: records.Site
) -> None:
    assert run("site", "set", "demo", "--title", " The Garden ").exit_code == 0
    assert (site_settings.get("demo").title, site_settings.get("demo").name) == ("The Garden",) * 2
    for wrong in ("x" * 61, "a\nb", "a\u202eb"):
        assert run("site", "set", "demo", "--title", wrong).exit_code == 1
    run("site", "set", "demo", "--title", "")
    assert site_settings.get("demo") == site
    assert site.name == "demo"


def test_an_operator_renames_a_site(
    run: Runner, store: connection.Store, site: records.Site
) -> None:
    renamed = run("site", "rename", "demo", "garden")
    assert renamed.output == "demo is now garden. Snippets with its earlier ids still work.\n"
    assert run("site", "show", "garden").output.startswith("demo\t")
    assert run("site", "rename", "garden", "No Id").exit_code == 1

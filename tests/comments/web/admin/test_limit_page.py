"""Test the pages for limits and imports, redirects to them, and confirmations of changes."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urljoin

import pytest

from comments import config
from comments.domain import records
from comments.events import audit_log
from comments.limits import usage
from comments.sites import site_settings
from comments.transfer.importing import import_journal, running_import
from comments.transfer.parsing import imported_file
from comments.web.rendering import labels
from tests.support.people.console_browser import DESK, OWN, Desk
from tests.support.threads import sample_threads

EVE = records.Author("Eve", id="g:eve")


def now() -> datetime:
    return datetime.now(UTC)


def test_an_owner_sets_the_limits_for_posts_and_the_budget(
    owner: Desk, desk: Desk, settings: config.Settings
) -> None:
    assert f"Now {settings.same_texts}, the service" in owner.page("/limits")
    owner.settle("/limits", posts_per_network="7", proof_of_work="2000000", reason="a flood")
    site = site_settings.get("demo")
    assert (site.guard.posts_per_network, site.guard.proof_of_work) == (7, 2_000_000)
    assert site.guard.same_texts is None
    assert "Now 7, set for this site" in owner.page("/limits")
    # Empty fields reset all limits to the service's limits.
    empty = dict.fromkeys(records.OwnPostLimits.__struct_fields__, "")
    owner.settle("/limits", **empty)  # type: ignore[arg-type]
    assert site_settings.get("demo").guard == records.OwnPostLimits()
    owner.settle("/limits/budget", posts="5", reads="1000000000", then="read-only")
    assert site_settings.get("demo").budget == records.Budget(
        posts=5, reads=1_000_000_000, then="read-only"
    )
    usage.note("demo", usage.UsageAmounts(posts=5), now=now())
    assert "5 used today. <strong>Nothing is left.</strong>" in owner.page("/limits")
    entries = audit_log.log("demo")
    assert [(each.verb, each.after) for each in entries] == [
        ("set-site", "budget"), ("set-site", "guard"), ("set-site", "guard"),
    ]  # fmt: skip
    assert entries[-1].reason == "a flood"
    desk.settle("/limits", posts_per_network="1", status=403)
    assert "Limits" not in desk.page("/queue")


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/limits", {"posts_per_network": "-1"}),
        ("/limits", {"posts_per_network": "10001"}),
        ("/limits", {"form_seconds": "1e3"}),
        ("/limits", {"proof_of_work": "9" * 11}),
        ("/limits", {"more": "1"}),
        ("/limits/budget", {"posts": "1000000001"}),
        ("/limits/budget", {"then": "never"}),
    ],
)
def test_an_invalid_limit_is_refused_by_its_field(
    owner: Desk, path: str, form: dict[str, str]
) -> None:
    said = owner.settle(path, status=400, **form)
    assert labels.label("admin.field", next(iter(form))).lower() in said.lower()
    assert site_settings.get("demo").guard == records.OwnPostLimits()
    assert site_settings.get("demo").budget == records.Budget()


def test_guessed_addresses_redirect_to_the_console(desk: Desk, site: records.Site) -> None:
    for path, found in (
        ("/admin/", "/admin"), ("/admin/sites", "/admin"), ("/admin/sites/", "/admin"),
        ("/admin/sites/demo", f"{DESK}/queue"), ("/admin/sites/demo/", f"{DESK}/queue"),
    ):  # fmt: skip
        response = desk.client.get(path)
        assert response.status_code == 303
        assert urljoin(path, response.headers["Location"]) == found
    for path in ("/admin/sites/other", "/admin/sites/other/", f"{DESK}/more", "/admin/x/y"):
        missed = desk.client.get(path)
        assert missed.status_code == 404
        assert ">Home</a>" in missed.text
        assert missed.headers["Cache-Control"] == "no-store"


def test_a_page_confirms_the_action_that_led_to_it(owner: Desk, site: records.Site) -> None:
    """The URL's fragment names the confirmation, so a reload does not repeat the change."""
    sample_threads.post(site, "text", author=EVE)
    said = {}
    for path, form in (
        ("/bans?id=g%3Aeve", {"act": "ban"}),
        ("/bans?id=g%3Aeve", {"act": "unban"}),
        ("/bans?id=g%3Aeve", {"act": "restore"}),
        ("/rules", {"act": "put", "id": "r", "action": "hold", "words": "x"}),
        ("/rules/remove", {"id": "r"}),
        ("/thread/state?thread=page", {"state": "closed"}),
        ("/log", {}),
    ):
        undone = {"entry": audit_log.log("demo")[0].id} if path == "/log" else {}
        data = {"form": owner.token, **form, **undone}
        response = owner.client.post(f"{DESK}{path}", data=data, headers=OWN)
        assert response.status_code == 303
        said[form.get("act", path)] = response.headers["Location"].partition("#")[2]
    assert said == {
        "ban": "banned", "unban": "lifted", "restore": "restored", "put": "saved",
        "/rules/remove": "removed", "/thread/state?thread=page": "saved", "/log": "undone",
    }  # fmt: skip
    page = owner.page("/queue")
    assert all(f'id="{name}"' in page for name in said.values())


def test_imports_are_shown_with_their_progress(
    owner: Desk, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "<table" not in owner.page("/imports")
    file = imported_file.ImportedFile("disqus", "a<b>.xml", "digest", 1_000)
    journal = running_import.RunningImport("demo", file, now(), now)
    journal.begin()
    journal.advance(100)  # Too soon after the start to be written
    assert "Running, 0%: 0 of 1,000 comments processed</td>" in owner.page("/imports")
    monkeypatch.setattr(running_import, "PAUSE", 0.0)
    with monkeypatch.context() as later:
        later.setattr(journal, "_clock", lambda: now() + timedelta(seconds=90))
        journal.advance(200)
    page = owner.page("/imports")
    assert "Running, 30%, about 4 minutes left: 300 of 1,000 comments processed</td>" in page
    journal.end()
    page = owner.page("/imports")
    assert "<td>Finished: all 1,000 comments processed. 0 added.<p" in page
    assert ">Can be undone until <time" in page
    assert "a&lt;b&gt;.xml" in page
    other = imported_file.ImportedFile("wordpress", "b.xml", "another digest", 1)
    running_import.RunningImport("demo", other, now(), now).begin()
    late = now() + timedelta(minutes=2)
    assert [each.may_still_run(late) for each in import_journal.recent_imports("demo")] == [
        False,
        False,
    ]
    monkeypatch.setattr(import_journal, "LATE", 0)
    page = owner.page("/imports")
    assert "<strong>Interrupted <time" in page
    assert "0 of 1 comments processed. To finish it, import the same file again." in page
    assert import_journal.recent_imports("dem") == import_journal.recent_imports("demo2") == []

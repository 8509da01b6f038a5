"""A field that a console form lacks keeps its stored value; an empty field empties it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from comments.domain import records
from comments.moderation import thread_list
from comments.moderation.classifiers import registration
from comments.moderation.policy import policy_changes, rulebook, rules
from comments.sites import site_settings
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

ADA = records.Actor("cli", "Ada")
RULE = rules.Rule("bets", rules.Action.HOLD, words=("casino",), links=3)
THREAD = records.ThreadName("demo", "page")


@pytest.fixture
def settled(site: records.Site, owner: Desk) -> None:
    """Give everything that the forms change a value that is not the default."""
    del owner  # Opens the store
    now = datetime.now(UTC)
    sample_threads.post(site, "first", title="A page", url="http://localhost:8080/a")
    options: dict[str, Any] = {"votes": False, "website": False, "guests": True, "forms": True}
    options |= {"order": "newest", "theme": "dark", "language": "de", "live": 30}
    site_settings.change(
        "demo",
        query_keys=["id"],
        keep_trailing_slash=True,
        ignore_www=True,
        ignore_amp=True,
        cdn_seconds=5,
        freshness=7,
        filed=["sport"],
        moderators=["mod@site.example"],
        guard={"posts_per_network": 7},
        budget={"posts": 5, "then": "read-only"},
        options=options | {"images": ["https://images.example"]},
    )
    policy_changes.set_policy(
        "demo", ADA, now=now, policy=records.Policy.LINKS, close_after=9, reports=4
    )
    policy_changes.put_rule("demo", RULE, ADA, now=now)
    policy_changes.set_thread(THREAD, ADA, now=now, policy=records.Policy.ALL)


def _state() -> tuple[Any, ...]:
    return site_settings.get("demo"), rulebook.from_store("demo"), thread_list.read_thread(THREAD)


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/settings", {}),
        ("/settings", {"freshness": "7"}),
        ("/settings/options", {}),
        ("/settings/options", {"guests": "on"}),
        ("/settings/policy", {}),
        ("/limits", {}),
        ("/limits/budget", {}),
        ("/rules", {"act": "put", "id": "bets", "action": "hold"}),
        ("/thread/state?thread=page", {"state": "open"}),
        ("/thread/title?thread=page", {"act": "set"}),
    ],
)
def test_a_form_changes_no_field_that_it_lacks(owner: Desk, path: str, form: Any) -> None:
    before = _state()
    owner.settle(path, **form)
    assert _state() == before


@pytest.mark.usefixtures("settled")
def test_a_complete_form_unchecks_boxes_and_empties_fields(owner: Desk) -> None:
    kept: Any = {
        "title": "",
        "origins": "http://localhost:8080",
        "cdn_seconds": "5",
        "freshness": "7",
    }
    owner.settle("/settings", query_keys="", categories="", moderators="", **kept)
    site = site_settings.get("demo")
    assert (site.query_keys, site.categories, site.moderators) == ((), (), ())
    assert not any((site.keep_trailing_slash, site.ignore_www, site.ignore_amp))


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/advisers", {"act": "set", "name": "akismet", "key": "abc", "holds": "on"}),
        ("/turnstile", {"act": "set", "key": "0xKEY", "secret": "0xSECRET", "refuses": "on"}),
    ],
)
def test_boxes_of_a_form_without_its_key_are_not_unchecked(
    owner: Desk, path: str, form: Any
) -> None:
    owner.settle(path, status=200, **form)
    lacking = {name: value for name, value in form.items() if name in {"act", "name"}}
    before = site_settings.get("demo").turnstile, registration.every("demo")
    owner.settle(path, status=400, **lacking)
    assert (site_settings.get("demo").turnstile, registration.every("demo")) == before

"""Previews are limited per network and count towards the site's budget."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from comments import config
from comments.limits import usage
from comments.posting import previews
from comments.sites import site_settings
from comments.store import connection
from datastore_emulator import inprocess, testing
from tests.support.people import api_requests
from tests.support.people.post_times import Moment

PREVIEW = "/api/v1/sites/demo/preview"


def ask(client: FlaskClient, peer: str = "192.0.2.1", body: str = "*Hello*") -> Any:
    return client.post(PREVIEW, json={"body": body}, environ_base={"REMOTE_ADDR": peer})


class Clock:
    """A process's clock that the test sets."""

    def __init__(self) -> None:
        self.now = 600.0

    def __call__(self) -> float:
        return self.now


def test_a_network_gets_a_limited_number_per_minute(door: Any) -> None:
    client = door(previews_per_network=2)
    assert [ask(client).status_code for _ in range(2)] == [200, 200]
    refused = ask(client)
    assert api_requests.refused(refused, 429) == "too-many-previews"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert ask(client, "192.0.2.2").status_code == 200
    free = door(previews_per_network=0)
    assert {ask(free).status_code for _ in range(40)} == {200}


def test_the_limit_renews_each_minute_and_wider_networks_have_their_own() -> None:
    clock = Clock()
    pace = previews.Pace(clock)
    of_one_56 = [f"2001:db8:0:{number:x}::/64" for number in range(9)]
    assert [pace.wait(each, 2) for each in of_one_56] == [0] * 8 + [60]
    clock.now += 59.5
    assert pace.wait(of_one_56[0], 2) == 1
    clock.now += 0.5
    assert pace.wait(of_one_56[0], 2) == 0


def test_memory_is_bounded_for_any_number_of_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previews, "MOST_NETWORKS", 10)
    pace = previews.Pace(Clock())
    found = [pace.wait(f"192.0.2.{number}", 3) for number in range(20)]
    assert found == [0] * 13 + [60] * 7
    assert len(pace._made) == 11


def test_previews_count_in_the_budget_and_cost_no_store_calls(
    door: Any, engine: inprocess.Engine, open_store: connection.Store, moment: Moment
) -> None:
    client = door()
    ask(client)
    with testing.meter(engine) as cost:
        assert ask(client).status_code == 200
        assert ask(client, body="[^" * 999 + "_*" * 4_000).status_code == 400
    assert (cost.reads, cost.writes) == (0, 0)
    with open_store.context():
        assert usage.total("demo", now=moment.at).previews == 3
        usage.flush()
        assert usage.stored_usage("demo", moment.at.date().isoformat()).previews == 3


def test_a_spent_preview_budget_refuses_only_previews(
    door: Any, open_store: connection.Store
) -> None:
    with open_store.context():
        site_settings.change("demo", budget={"previews": 2, "then": "read-only"})
    client = door()
    assert [ask(client).status_code for _ in range(3)] == [200, 200, 429]
    assert api_requests.refused(ask(client), 429) == "preview-budget-spent"
    assert api_requests.post(client)["comment"]["html"] == "<p>Hello</p>\n"


def test_a_site_that_refuses_posts_refuses_previews(
    door: Any, open_store: connection.Store
) -> None:
    with open_store.context():
        site_settings.change("demo", budget={"posts": 1, "then": "read-only"})
    client = door()
    assert ask(client).status_code == 200
    api_requests.post(client)
    assert api_requests.refused(ask(client), 429) == "budget-spent"


def test_previews_are_limited_by_default() -> None:
    given = {"SECRET": "x" * 40, "PREVIEWS_PER_NETWORK": "7"}
    assert config.load({"SECRET": "x" * 40}).previews_per_network == 30
    assert config.load(given).previews_per_network == 7

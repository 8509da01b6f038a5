"""Test how post limits are set and whether they come from the site or the service."""

import dataclasses

import click.testing
import flask
import pytest

from comments import config, errors
from comments.domain import records
from comments.limits import demand, post_limits
from comments.sites import site_settings
from comments.store import connection


def test_a_site_without_its_own_limit_has_the_services(settings: config.Settings) -> None:
    service = dataclasses.replace(settings, proof_of_work=7, posts_per_thread=9)
    own = records.OwnPostLimits(proof_of_work=0, same_texts=4)
    found = post_limits.of(records.Site("demo", (), "", 2, guard=own), service)
    assert dataclasses.astuple(found) == (0, 0, 0, 0, 9, 4)


def test_every_limit_is_enabled_by_default() -> None:
    loaded = config.load({"SECRET": "0123456789abcdef"})
    assert all(getattr(loaded, name) for name in post_limits.RANGES)


@pytest.mark.parametrize("name", post_limits.RANGES)
def test_each_limit_has_a_range(
    open_store: connection.Store, site: records.Site, name: str
) -> None:
    with open_store.context():
        for wrong in (-1, post_limits.RANGES[name] + 1):
            with pytest.raises(errors.BadInput) as caught:
                site_settings.change(site.id, guard={name: wrong})
            assert caught.value.field == name
        site_settings.change(site.id, guard={name: post_limits.RANGES[name]})
        assert getattr(site_settings.get(site.id).guard, name) == post_limits.RANGES[name]
        site_settings.change(site.id, guard={name: None}, cdn_seconds=1)
        assert site_settings.get(site.id).guard == records.OwnPostLimits()


def run(app: flask.Flask, *words: str) -> click.testing.Result:
    return app.test_cli_runner().invoke(args=["post-limits", *words])


def test_limits_are_shown_and_set(app: flask.Flask, site: records.Site) -> None:
    assert run(app, "set", "demo", "posts_per_network", "12").exit_code == 0
    assert "posts_per_network\t12\tset for this site" in run(app, "show", "demo").output
    assert "same_texts\t0\tservice default" in run(app, "show", "demo").output
    assert run(app, "set", "demo", "posts_per_network", "service").exit_code == 0
    assert "posts_per_network\t0\tservice default" in run(app, "show", "demo").output


@pytest.mark.parametrize("value", ["-1", "x", "1.5", "99999", "9" * 5_000, ""])
def test_a_limit_that_is_not_a_number_in_range_is_refused(
    app: flask.Flask, site: records.Site, value: str
) -> None:
    refused = run(app, "set", "demo", "posts_per_network", "--", value)
    assert refused.exit_code in {1, 2}
    assert "set for this site" not in run(app, "show", "demo").output


class Clock:
    now = 6_000.0

    def __call__(self) -> float:
        return self.now


def test_proofs_are_harder_for_two_minutes_after_high_demand() -> None:
    clock = Clock()
    load = demand.Demand(clock)
    assert [load.factor("a") for _ in range(demand.CALM)] == [1] * demand.CALM
    assert load.factor("a") == 2
    assert load.factor("b") == 1
    clock.now += 60
    assert load.factor("a") == 2
    clock.now += 60
    assert load.factor("a") == 1


def test_the_difficulty_has_a_maximum() -> None:
    load = demand.Demand(Clock())
    assert max(load.factor("a") for _ in range(10_000)) == demand.MOST


def test_demand_is_forgotten_after_a_quiet_period() -> None:
    clock = Clock()
    load = demand.Demand(clock)
    for _ in range(500):
        load.factor("a")
    clock.now += 600
    assert load.factor("a") == 1

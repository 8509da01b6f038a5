"""Test what each site's budget counts and what happens when a budget is spent."""

import dataclasses
import itertools
import logging
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click.testing
import flask
import pytest
from flask.testing import FlaskClient

from comments import config, errors
from comments.domain import records
from comments.limits import budgets, usage
from comments.moderation.policy import policy_changes
from comments.moderation.policy.rules import Action, Rule
from comments.sites import site_settings
from comments.store import connection
from comments.upkeep import background_worker
from comments.web.api.callers import api_tokens
from datastore_emulator import faults, inprocess, testing
from tests.comments.conftest import Clock
from tests.conftest import ROOT
from tests.support import programs
from tests.support.people import account_holders, api_requests, proof_solver
from tests.support.people.proof_solver import post
from tests.support.threads import cache_twins

pytestmark = pytest.mark.usefixtures("one_day")

TODAY = "2026-01-02"
NOW = datetime.fromisoformat(f"{TODAY}T03:04:05+00:00")


def used(store: connection.Store, site: str = "demo") -> usage.UsageAmounts:
    """Return today's usage as this process knows it, stored or not."""
    with store.context():
        return usage.total(site, now=datetime.now(UTC))


def spend(store: connection.Store, site: str = "demo", **numbers: int) -> None:
    with store.context():
        usage.note(site, usage.UsageAmounts(**numbers), now=datetime.now(UTC))


def limit(store: connection.Store, **limits: int | str) -> None:
    with store.context():
        for name, value in limits.items():
            site_settings.change("demo", budget={name: value})


def forget(store: connection.Store) -> None:
    """Empty the usage book to simulate a different process."""
    usage.BOOK.forget(store)


def test_counted_usage_equals_billed_usage(
    client: FlaskClient, engine: inprocess.Engine, open_store: connection.Store
) -> None:
    def step(number: int) -> None:
        token = api_requests.answer(post(client, f"words {number}"))["token"]
        listed = api_requests.answer(client.get(api_requests.THREAD))["comments"]
        client.get(f"{api_requests.THREAD}&order=newest&limit=2")
        client.get("/embed/demo?thread=t")
        client.get("/feeds/demo")
        proof_solver.post(client, "an answer", parent=listed[0]["id"], token=token)

    step(0)
    before = used(open_store)
    with testing.meter(engine) as cost:
        for number in range(1, 4):
            step(number)
    after = used(open_store)
    assert (after.writes - before.writes, after.posts) == (cost.writes + cost.deletes, 8)
    assert after.reads - before.reads == cost.reads
    assert cost.reads > 20


def test_usage_by_comment_id_and_without_a_site_is_counted(
    client: FlaskClient, open_store: connection.Store
) -> None:
    posted = api_requests.answer(post(client))
    before, service = used(open_store), used(open_store, usage.SERVICE)
    one = api_requests.ONE + posted["comment"]["id"]
    client.patch(one, json={"body": "new"}, headers=api_requests.bearer(posted))
    assert used(open_store).writes > before.writes
    for path in (one, "/healthz", "/api/v1/sites/nowhere/comments?thread=t", "/embed/no-site"):
        client.get(path)
    with open_store.context():
        waiting = usage.BOOK.get().take()
    assert {site for site, _ in waiting} == {"demo", usage.SERVICE}
    assert waiting[usage.SERVICE, datetime.now(UTC).date().isoformat()].reads > service.reads


def test_reading_writes_nothing_and_its_usage_is_stored_by_upkeep(
    client: FlaskClient, engine: inprocess.Engine, open_store: connection.Store
) -> None:
    post(client)
    with testing.meter(engine) as cost:
        for _ in range(5):
            client.get(f"{api_requests.THREAD}&order=newest")
    assert (cost.writes, cost.reads > 4) == (0, True)
    known = used(open_store)
    with open_store.context():
        usage.settle(now=datetime.now(UTC))
        assert usage.stored_usage("demo", datetime.now(UTC).date().isoformat()) == known
        with testing.meter(engine) as cost:
            usage.flush()
        assert (cost.reads, cost.writes) == (0, 0)


def test_two_processes_add_to_one_row(open_store: connection.Store) -> None:
    for number in (3, 4):
        spend(open_store, reads=number, mails=1)
        with open_store.context():
            assert usage.flush() == 1
        forget(open_store)
    assert used(open_store) == usage.UsageAmounts(reads=7, mails=2)


def test_a_flush_whose_answer_is_lost_adds_once(
    engine: inprocess.Engine, open_store: connection.Store, brief_doubt: None
) -> None:
    spend(open_store, posts=5)
    lost = [{"rpc": "Commit", "call": 1, "when": "after", "status": "UNAVAILABLE"}]
    engine.install_faults(faults.Plan.parse({"seed": 1, "rules": lost}))
    with open_store.context():
        usage.flush()
    engine.install_faults(None)
    forget(open_store)
    assert used(open_store).posts == 5


def lose(engine: inprocess.Engine, *rules: dict[str, Any]) -> None:
    """Make commits fail according to the rules of a fault plan."""
    asked = [{"rpc": "Commit", **rule} for rule in rules]
    engine.install_faults(faults.Plan.parse({"seed": 4, "rules": asked}))


def test_a_post_whose_answer_was_lost_is_one_new_comment_and_counted(
    client: FlaskClient,
    engine: inprocess.Engine,
    open_store: connection.Store,
    brief_doubt: None,
) -> None:
    lose(engine, {"every": 3, "when": "after", "status": "UNAVAILABLE"})
    answers = [post(client, f"words {n}", key=f"key-{n}") for n in range(12)]
    engine.install_faults(None)
    assert [each.status_code for each in answers] == [201] * 12
    assert not any("Idempotent-Replayed" in each.headers for each in answers)
    assert api_requests.stored(open_store, "Comment") == used(open_store).posts == 12
    repeat = post(client, "words 2", key="key-2")
    assert (repeat.status_code, repeat.headers["Idempotent-Replayed"]) == (201, "true")
    assert used(open_store).posts == 12


@pytest.mark.slow
def test_every_acknowledged_post_is_counted_once_in_any_process(
    engine: inprocess.Engine,
    quick: cache_twins.Process,
    plain: cache_twins.Process,
    brief_doubt: None,
) -> None:
    lose(
        engine,
        {"probability": 0.2, "when": "after", "status": "UNAVAILABLE"},
        {"probability": 0.2, "when": "after", "status": "PERMISSION_DENIED"},
        {"probability": 0.2, "when": "before", "status": "PERMISSION_DENIED"},
    )
    refused, replayed = 0, 0
    for number in range(16):
        for process in itertools.cycle((quick, plain)):
            answer = post(process.client, f"words {number}", key=f"key-{number}")
            if answer.status_code == 201:
                replayed += "Idempotent-Replayed" in answer.headers
                break
            assert answer.status_code == 503
            refused += 1
    engine.install_faults(None)
    assert refused > 8
    assert replayed > 2
    for process in (quick, plain):
        assert post(process.client, "words 0", key="key-0").status_code == 201
        with process.store.context():
            usage.flush()
            usage.flush()
    with quick.store.context():
        assert usage.stored_usage("demo", datetime.now(UTC).date().isoformat()).posts == 16


def test_a_doubtful_post_is_dropped_if_it_was_not_stored(
    client: FlaskClient, engine: inprocess.Engine, open_store: connection.Store, clock: Clock
) -> None:
    usage.BOOK.put(open_store, usage.ProcessUsage(clock))
    lose(engine, {"when": "before", "status": "PERMISSION_DENIED"})
    assert post(client, key="never").status_code == 503
    engine.install_faults(None)
    with open_store.context():
        for _ in range(2):
            usage.flush()
            clock.now += usage.FRESH + 1
        with testing.meter(engine) as cost:
            usage.flush()
    assert (cost.reads, cost.writes) == (0, 0)
    assert used(open_store).posts == 0


def test_usage_that_cannot_be_stored_is_kept(
    engine: inprocess.Engine, short_deadline: connection.Store, caplog: pytest.LogCaptureFixture
) -> None:
    spend(short_deadline, posts=5)
    spend(short_deadline, "other", posts=6)
    failing = [{"rpc": "Commit", "status": "UNAVAILABLE"}]
    engine.install_faults(faults.Plan.parse({"seed": 1, "rules": failing}))
    with short_deadline.context():
        with pytest.raises(errors.Overloaded):
            usage.flush()
        usage.settle(now=datetime.now(UTC))
        assert "could not be stored" in caplog.text
        engine.install_faults(None)
        assert usage.flush() == 3  # The third row is the test thread's own usage
    forget(short_deadline)
    assert (used(short_deadline).posts, used(short_deadline, "other").posts) == (5, 6)


def test_a_day_ends_at_midnight(open_store: connection.Store) -> None:
    with open_store.context():
        usage.note("demo", usage.UsageAmounts(posts=9), now=NOW)
        assert usage.total("demo", now=NOW).posts == 9
        assert usage.total("demo", now=NOW + timedelta(days=1)).posts == 0
        usage.flush()
        assert usage.stored_usage("demo", TODAY).posts == 9
        assert usage.total("demo", now=NOW).posts == 9
        assert usage.total("demo", now=NOW + timedelta(days=1)).posts == 0


KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from comments.store import connection
from comments.limits import usage
from datastore_emulator import inprocess
from tests.conftest import ROOT

engine = inprocess.open_engine(sys.argv[1], indexes=ROOT / "index.yaml")
store = connection.Store(inprocess.Channel(engine), project="test")
now = datetime.fromisoformat(sys.argv[2])
with store.context():
    usage.note("demo", usage.UsageAmounts(reads=100), now=now)
    usage.flush()
    usage.note("demo", usage.UsageAmounts(reads=10), now=now)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.embedded
def test_a_kill_loses_only_unstored_usage(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    command = [sys.executable, "-c", KILLED, str(path), NOW.isoformat()]
    assert subprocess.run(command, cwd=programs.ROOT, check=False).returncode == -9
    with inprocess.open_engine(path, indexes=ROOT / "index.yaml") as engine:
        store = connection.Store(inprocess.Channel(engine), project="test")
        with store.context():
            assert usage.stored_usage("demo", TODAY).reads == 100


def test_a_worker_stores_pending_usage_when_it_ends(open_store: connection.Store) -> None:
    spend(open_store, posts=3)
    worker = background_worker.BackgroundWorker(open_store, first=600)
    worker.start()
    assert worker.stop(programs.PATIENCE)
    forget(open_store)
    assert used(open_store).posts == 3


def test_a_spent_budget_makes_a_site_read_only(
    client: FlaskClient, open_store: connection.Store
) -> None:
    posted = api_requests.answer(post(client, key="the-key"))
    limit(open_store, posts=2, then="read-only")
    assert post(client).status_code == 201
    refused = post(client)
    assert api_requests.refused(refused, 429) == "budget-spent"
    assert 0 < int(refused.headers["Retry-After"]) <= 86_400
    assert "accepts no more comments today" in refused.get_json()["detail"]
    one, mine = api_requests.ONE + posted["comment"]["id"], api_requests.bearer(posted)
    assert (
        api_requests.refused(client.patch(one, json={"body": "x"}, headers=mine), 429)
        == "budget-spent"
    )
    vote = client.put(f"{one}/vote", json={"value": 1})
    assert api_requests.refused(vote, 429) == "budget-spent"
    # Retries, reads and retractions still work.
    assert post(client, key="the-key").status_code == 201
    assert client.get(api_requests.THREAD).status_code == 200
    assert client.post("/api/v1/sites/demo/counts", json={"threads": ["t"]}).status_code == 200
    assert client.delete(one, headers=mine).status_code == 200


def test_a_spent_budget_makes_a_site_slow(
    open_store: connection.Store, settings: config.Settings, site: records.Site
) -> None:
    from comments import app as apps  # noqa: PLC0415 - import Flask only on demand

    rules = dataclasses.replace(settings, proof_of_work=20, posts_per_network=50)
    client = apps.create_app(rules, open_store).test_client()
    limit(open_store, reads=1_000)
    spend(open_store, reads=2_000)
    assert (
        api_requests.answer(client.get(proof_solver.CHALLENGE))["maxnumber"] == 20 * budgets.SLOWER
    )
    answers = [post(client, proof=proof_solver.proof(client)) for _ in range(2)]
    assert [each.status_code for each in answers] == [201, 429]


def test_a_slow_site_is_slow_for_members_too(
    open_store: connection.Store, settings: config.Settings, site: records.Site
) -> None:
    from comments import app as apps  # noqa: PLC0415 - import Flask only on demand

    client = apps.create_app(settings, open_store).test_client()
    limit(open_store, reads=1_000)
    spend(open_store, reads=2_000)
    with open_store.context():
        rule = Rule(id="r", action=Action.HOLD, repeated=1_000)
        policy_changes.put_rule("demo", rule, records.Actor("cli", "Ada"), now=datetime.now(UTC))
        account = account_holders.account("bob", password="")
    member = api_tokens.Member(site.id, account.id, account.epoch)
    token = api_tokens.sign(member, secret=settings.secret)
    answers = [post(client, token=token, peer=f"198.51.100.{n}") for n in range(2)]
    assert [each.status_code for each in answers] == [201, 429]


@pytest.mark.parametrize(
    ("reads", "standing"),
    [
        (0, budgets.BudgetLevel.FREE),
        (799, budgets.BudgetLevel.FREE),
        (800, budgets.BudgetLevel.SHORT),
        (999, budgets.BudgetLevel.SHORT),
        (1_000, budgets.BudgetLevel.SPENT),
    ],
)
def test_a_budget_is_reported_as_short_at_four_fifths(
    open_store: connection.Store,
    site: records.Site,
    caplog: pytest.LogCaptureFixture,
    reads: int,
    standing: budgets.BudgetLevel,
) -> None:
    limit(open_store, reads=1_000, posts=50)
    spend(open_store, reads=reads)
    with open_store.context(), caplog.at_level(logging.WARNING, "flatthread"):
        for _ in range(3):
            assert budgets.of(site_settings.get("demo"), now=datetime.now(UTC)) is standing
    told = [f"Site demo has used {reads} of 1000 reads today"]
    assert caplog.messages == (told if standing else [])


def test_a_site_without_a_budget_costs_nothing_and_one_with_a_budget_a_read_a_minute(
    client: FlaskClient, engine: inprocess.Engine, open_store: connection.Store
) -> None:
    post(client)

    def reads() -> int:
        with testing.meter(engine) as cost:
            post(client)
        return cost.reads

    plain = reads()
    limit(open_store, posts=50)
    client.get("/api/v1/sites/demo/subscription")  # Reads the site again
    assert [reads(), reads(), reads()] == [plain + 1, plain, plain]


def run(app: flask.Flask, *words: str) -> click.testing.Result:
    return app.test_cli_runner().invoke(args=["budget", *words])


def test_budgets_are_shown_and_set(
    app: flask.Flask, open_store: connection.Store, site: records.Site
) -> None:
    assert run(app, "set", "demo", "reads", "100").exit_code == 0
    assert run(app, "set", "demo", "then", "read-only").exit_code == 0
    spend(open_store, reads=90, posts=2)
    spend(open_store, usage.SERVICE, writes=7)
    shown = run(app, "show", "demo").output
    assert "reads\t90\tof 100\tshort\n" in shown
    assert "posts\t2\tunlimited\n" in shown
    assert "then\tread-only\n" in shown
    assert "writes\t7\n" in run(app, "show").output


@pytest.mark.parametrize(
    ("name", "value"),
    [("reads", "-1"), ("reads", "x"), ("posts", "1" * 30), ("then", "off"), ("then", "1")],
)
def test_an_invalid_budget_is_refused(
    app: flask.Flask, site: records.Site, name: str, value: str
) -> None:
    assert run(app, "set", "demo", name, "--", value).exit_code == 1
    assert "unlimited" in run(app, "show", "demo").output
    assert "then\tslow" in run(app, "show", "demo").output


def test_cron_stores_pending_usage(
    open_store: connection.Store, settings: config.Settings, site: records.Site
) -> Any:
    from comments import app as apps  # noqa: PLC0415 - same

    cron = dataclasses.replace(settings, on_app_engine=True)
    client = apps.create_app(cron, open_store).test_client()
    spend(open_store, posts=3)
    assert client.get("/tasks/deliver", headers={"X-Appengine-Cron": "true"}).status_code == 200
    forget(open_store)
    assert used(open_store).posts == 3


def test_on_app_engine_a_post_stores_pending_usage_once_a_minute(
    open_store: connection.Store, settings: config.Settings, site: records.Site
) -> None:
    from comments import app as apps  # noqa: PLC0415 - same

    client = apps.create_app(
        dataclasses.replace(settings, on_app_engine=True), open_store
    ).test_client()
    post(client)
    with open_store.context():
        book = usage.BOOK.get()
    assert used(open_store).posts == 1
    book._flushed -= usage.FRESH + 1
    post(client)
    forget(open_store)
    assert used(open_store).posts == 2

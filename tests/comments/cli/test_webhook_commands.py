"""Test what the commands `webhook` and `delivery` print, do and refuse."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import click.testing
import flask
import pytest

from comments.cli.commands import webhook_commands
from comments.domain import records
from comments.domain.outcomes import End, Outcome
from comments.events import (
    dead_letters,
    dispatcher,
    message_queue,
    message_sender,
    outbox,
    retry_pauses,
    webhook_endpoints,
    webhooks,
)
from comments.store import connection, ownership, transactions
from comments.upkeep import wiring
from tests.support import loopback_servers
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

Run = Callable[..., click.testing.Result]


@pytest.fixture
def run(app: flask.Flask) -> Run:
    """Return a function that runs `flatthread ...`."""
    runner = app.test_cli_runner()
    return lambda *arguments: runner.invoke(args=arguments)


@pytest.fixture
def told(open_store: connection.Store) -> Iterator[loopback_servers.Receiver]:
    """A loopback receiver that the commands are allowed to send requests to."""
    with loopback_servers.receiver() as made:
        client = loopback_servers.client(made.port)
        message_sender.OUTBOUND.put(open_store, client)
        yield made


@pytest.fixture
def name(run: Run, site: records.Site, told: loopback_servers.Receiver) -> str:
    """Add a webhook to the site; return its name."""
    return _name(run("webhook", "add", "demo", told.url))


def _name(added: click.testing.Result) -> str:
    found = re.fullmatch(
        r"Added webhook ([0-9a-f]{8}) to demo\.\nSecret \(shown only once\): whsec_\S+\n",
        added.output,
    )
    assert found is not None, added.output
    return found[1]


def _secrets() -> tuple[str, ...]:
    return webhook_endpoints.every("demo")[0].secrets


def test_a_hook_is_added_listed_and_removed_and_its_secret_shown_once(
    run: Run, store: connection.Store, site: records.Site, told: loopback_servers.Receiver
) -> None:
    added = run("webhook", "add", "demo", told.url, "--type", "comment.retracted")
    name = _name(added)
    assert _secrets()[0] in added.output
    listed = run("webhook", "list", "demo")
    assert listed.output == f"{name}\ton\tcomment.retracted\t{told.url}\n"
    for shown in (listed, run("webhook", "test", "demo", name), run("webhook", "on", "demo", name)):
        assert "whsec_" not in shown.output
    assert run("webhook", "remove", "demo", name).output == f"Removed webhook {name} of demo.\n"
    assert run("webhook", "list", "demo").output == ""


def test_a_new_secret_is_shown_once_and_comes_first(
    run: Run, store: connection.Store, name: str
) -> None:
    before = _secrets()
    turned = run("webhook", "rotate", "demo", name)
    assert _secrets() == (_secrets()[0], before[0])
    assert turned.output.endswith(f"(shown only once): {_secrets()[0]}\n")
    run("webhook", "rotate", "demo", name, "--leaked")
    assert len(_secrets()) == 1


def test_a_test_message_is_signed_and_its_answer_printed(
    run: Run, store: connection.Store, name: str, told: loopback_servers.Receiver
) -> None:
    arrived = run("webhook", "test", "demo", name)
    assert (arrived.exit_code, arrived.output) == (0, f"Webhook {name}: answered 200.\n")
    (heard,) = told.heard
    assert json.loads(heard.body)["type"] == "test"
    assert json.loads(heard.body)["data"] == {"site": "demo"}
    assert heard.headers["webhook-signature"].startswith("v1,")
    told.status = 500
    refused = run("webhook", "test", "demo", name)
    assert (refused.exit_code, refused.output) == (1, f"Webhook {name}: answered 500.\n")
    assert len({each.headers["webhook-id"] for each in told.heard}) == 2


def test_the_reason_why_a_hook_is_disabled_or_failing_is_shown(
    run: Run, store: connection.Store, name: str, told: loopback_servers.Receiver
) -> None:
    recipient = f"demo/{name}"
    webhook_endpoints.note(recipient, Outcome(End.RETRY, "answered 500"), now=sample_threads.START)
    since = "since 2026-01-02T03:04:05+00:00"
    assert f"\ton, 1 failure {since}: answered 500\t" in run("webhook", "list", "demo").output
    webhook_endpoints.note(
        recipient, Outcome(End.GIVE_UP, "answered 410"), now=sample_threads.START
    )
    assert "\toff: answered 410\t" in run("webhook", "list", "demo").output
    assert run("webhook", "on", "demo", name).output == f"Webhook {name} of demo is on.\n"
    assert "\ton\t" in run("webhook", "list", "demo").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["webhook", "add", "demo", "http://hooks.example/"], "url must start with https://"),
        (
            ["webhook", "add", "demo", "https://127.0.0.1/"],
            "url does not contain a valid host name.",
        ),
        (["webhook", "add", "demo", "https://hooks.example/"], "hooks.example is not on the"),
        (["webhook", "add", "nobody", "https://hooks.example/"], "There is no site nobody."),
        (["webhook", "list", "nobody"], "There is no site nobody."),
        (["webhook", "remove", "demo", "x"], "There is no webhook x."),
        (["webhook", "rotate", "demo", "x"], "There is no webhook x."),
        (["webhook", "test", "demo", "x"], "There is no webhook x."),
        (["webhook", "on", "demo", "x"], "There is no webhook x."),
        (["webhook", "on", "nobody", "x"], "There is no site nobody."),
        (["delivery", "show", "x.1"], "There is no dead letter x.1."),
        (["delivery", "revive", "x.1/hook/y"], "There is no dead letter x.1/hook/y."),
        (["delivery", "drop", "x.1"], "There is no dead letter x.1."),
    ],
)
def test_a_refusal_is_one_clear_line_that_names_the_fault(
    run: Run,
    site: records.Site,
    told: loopback_servers.Receiver,
    arguments: list[str],
    message: str,
) -> None:
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert message in refused.output
    assert refused.output.count("\n") == 1


def test_pending_messages_are_held_until_an_owner_sends_them(
    run: Run, name: str, site: records.Site, told: loopback_servers.Receiver,
    open_store: connection.Store,
) -> None:  # fmt: skip
    with open_store.context():
        sample_threads.post(site, "text")
    assert run("delivery", "hold").output == "Held 1 message (`delivery dead`).\n"
    with open_store.context():
        later = sample_threads.START + timedelta(days=1)
        message_sender.serve(lambda: later)
        assert told.heard == []
        assert len(dead_letters.dead().letters) == 1
        assert run("delivery", "revive", "--all").exit_code == 0
        message_sender.serve(lambda: datetime.now(UTC))
    assert len(told.heard) == 1
    assert run("delivery", "hold").output == "Held 0 messages (`delivery dead`).\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["webhook", "add", "demo"],
        ["webhook", "add", "demo", "https://hooks.example/", "--type", "comment.read"],
        ["delivery", "revive"],
        ["delivery", "drop", "x", "--all"],
        ["delivery", "dead", "--limit", "0"],
    ],
)
def test_wrong_usage_is_exit_code_2(run: Run, site: records.Site, arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


# --- Pending events and dead letters --------------------


@pytest.fixture
def dead(store: connection.Store, site: records.Site) -> list[str]:
    """Make three dead letters (an event and two messages) and a pending event."""
    event = f"{sample_threads.post(site, 'text').id}.1"

    def fail(_: object) -> ownership.Writes:
        raise ValueError("planned")

    for _ in range(retry_pauses.MOST_ATTEMPTS):
        dispatcher.deliver(
            [event], now=sample_threads.START, handlers=(dispatcher.Exact(outbox.COUNTERS, fail),)
        )
    rows = message_queue.new_rows(
        event, ["hook/demo/a", "hook/demo/b"], "{}", at=sample_threads.START
    )
    transactions.transaction(lambda: transactions.apply(message_queue.writes(rows)))
    ids = [row.key.id() for row in rows]
    for each in ids:
        message_queue.give_up(each, "answered 410")
    sample_threads.post(site, "waits", now=sample_threads.START + timedelta(minutes=1))
    return [event, *ids]


def test_pending_events_and_dead_letters_are_counted(run: Run, dead: list[str]) -> None:
    shown = run("delivery", "status").output
    assert re.fullmatch(
        r"Pending: 1 event, 0 messages; the oldest is \d+ s old\.\nDead letters: 3\.\n", shown
    )


def test_dead_letters_are_listed_in_pages_and_shown(run: Run, dead: list[str]) -> None:
    listed = run("delivery", "dead", "--limit", "2")
    lines = listed.stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == dead[:2]
    assert lines[0].split("\t")[1:] == [
        "posted", "2026-01-02T03:04:05+00:00", f"{retry_pauses.MOST_ATTEMPTS}", "ValueError"
    ]  # fmt: skip
    assert listed.stderr == f"There are more. Use --after {dead[1]}\n"
    rest = run("delivery", "dead", "--after", dead[1])
    assert rest.output == f"{dead[2]}\thook/demo/b\t2026-01-02T03:04:05+00:00\t0\tanswered 410\n"
    shown = run("delivery", "show", dead[2]).output
    assert f"id: {dead[2]}\nwhat: hook/demo/b\n" in shown
    assert "state: dead\n" in shown
    assert "reason: answered 410\n" in shown


def test_one_or_all_dead_letters_are_revived(
    run: Run, store: connection.Store, dead: list[str]
) -> None:
    told = "Revived 1; they are retried within a minute.\n"
    assert run("delivery", "revive", dead[0]).output == told
    assert "is not a dead letter." in run("delivery", "revive", dead[0]).output
    assert run("delivery", "revive", "--all").output == told.replace("1", "2")
    assert dead_letters.count_waiting(sample_threads.START).dead == 0
    dispatcher.deliver(counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS)
    counter_oracle.assert_all_counted()


def test_one_or_all_dead_letters_are_discarded(
    run: Run, store: connection.Store, dead: list[str]
) -> None:
    assert run("delivery", "drop", dead[1]).output == "Discarded 1.\n"
    assert run("delivery", "drop", "--all").output == "Discarded 2.\n"
    assert dead_letters.count_waiting(sample_threads.START) == dead_letters.Waiting(1, 0, 0, 0)
    # The recount adds what the discarded event would have counted.
    assert run("recount", "demo").exit_code == 0
    dispatcher.deliver(counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS)
    counter_oracle.assert_all_counted()


def test_the_command_accepts_exactly_the_existing_types() -> None:
    assert tuple(webhooks.Type) == webhook_commands._TYPES


def test_a_chat_is_added_without_showing_its_secret(
    run: Run, store: connection.Store, site: records.Site, told: loopback_servers.Receiver
) -> None:
    added = run("webhook", "add", "demo", f"{told.url}/c4n4ry", "--form", "discord")
    (hook,) = webhook_endpoints.every("demo")
    assert added.output == f"Added webhook {hook.id} to demo.\n"
    listed = run("webhook", "list", "demo").output
    types = "comment.posted,comment.held"
    assert listed == f"{hook.id}\ton\t{types}\tdiscord: hooks.example:{told.port}/…\n"
    assert "are not signed" in run("webhook", "rotate", "demo", hook.id).output
    assert run("webhook", "test", "demo", hook.id).exit_code == 0
    assert json.loads(told.heard[0].body)["allowed_mentions"] == {"parse": []}


def test_a_telegram_chat_is_added_with_a_token_typed_at_a_prompt(
    app: flask.Flask,
    run: Run,
    store: connection.Store,
    site: records.Site,
    told: loopback_servers.Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook_endpoints, "TELEGRAM", told.url.removesuffix("/in"))
    token = "1:" + "c4n4ry" * 6
    arguments = ["webhook", "add", "demo", "--form", "telegram", "--chat", "@news"]
    added = app.test_cli_runner().invoke(args=arguments, input=f"{token}\n")
    assert "c4n4ry" not in added.output
    listed = run("webhook", "list", "demo").output
    assert listed.endswith("\ttelegram: @news\n")
    run("webhook", "test", "demo", listed[:8])
    assert told.heard[0].path == f"/bot{token}/sendMessage"


@pytest.mark.parametrize(
    "rest",
    [
        [],
        ["--form", "slack"],
        ["--form", "telegram"],
        ["https://hooks.example/in", "--form", "telegram", "--chat", "1"],
        ["https://hooks.example/in", "--chat", "1"],
    ],
)
def test_a_webhook_needs_a_url_or_a_telegram_chat(
    run: Run, store: connection.Store, site: records.Site, rest: list[str]
) -> None:
    assert "Use either URL, or" in run("webhook", "add", "demo", *rest).output
    assert webhook_endpoints.every("demo") == ()

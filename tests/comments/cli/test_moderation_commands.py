"""Test what the commands `rule` and `moderate` print, do and refuse."""

import re
from collections.abc import Callable
from pathlib import Path

import click.testing
import flask
import pytest

from comments.cli.commands import moderation_commands
from comments.domain import records
from comments.domain.records import Status
from comments.events import audit_log, dispatcher
from comments.moderation import decisions
from comments.moderation.policy import rulebook
from comments.store import connection
from comments.upkeep import wiring
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads
from tests.support.threads.sample_exports import THREAD, post

Run = Callable[..., click.testing.Result]


@pytest.fixture
def run(app: flask.Flask, site: records.Site) -> Run:
    """Return a function that runs `flatthread ...`."""
    runner = app.test_cli_runner()
    return lambda *arguments, **more: runner.invoke(args=arguments, **more)


@pytest.fixture
def rows(open_store: connection.Store, site: records.Site) -> list[records.Comment]:
    with open_store.context():
        return [
            sample_threads.post(site, f"number {n}", author=sample_threads.author("ann"))
            for n in range(3)
        ]


def _status(store: connection.Store, row: records.Comment) -> Status:
    with store.context():
        return decisions.case("demo", row.id).comment.status


def test_a_rule_is_added_listed_replaced_and_removed(
    run: Run, open_store: connection.Store
) -> None:
    added = run("rule", "add", "demo", "--word", "casino*", "--links", "2", "--action", "spam")
    found = re.fullmatch(r"Saved rule ([0-9a-f]{8}) of demo\. .*\n", added.output)
    assert found is not None, added.output
    listed = run("rule", "list", "demo").output
    assert listed == f'{found[1]}\tspam\t{{"words":["casino*"],"links":2}}\n'
    run("rule", "add", "demo", "--id", found[1], "--name", "seo", "--off")
    assert run("rule", "list", "demo").output == f'{found[1]}\thold\toff\t{{"names":["seo"]}}\n'
    assert run("rule", "remove", "demo", found[1]).exit_code == 0
    assert run("rule", "list", "demo").output == ""
    with open_store.context():
        assert {entry.actor for entry in audit_log.log("demo")} == {moderation_commands.ACTOR}


def test_a_bulk_decision_follows_the_filters_and_is_undone(
    run: Run, open_store: connection.Store, rows: list[records.Comment]
) -> None:
    ids = [row.id for row in rows]
    run("moderate", "hold", "demo", *ids)
    chosen = ("--text", "number 1", "--why", "moderator", "--since", "2026-01-01")
    assert ids[1] in run("moderate", "queue", "demo", *chosen).output
    assert "0 comments" in run("moderate", "queue", "demo", "--until", "2026-01-01").output
    refused = run("moderate", "bulk", "demo", "approve", "--why", "mood")
    assert "'mood' is not a reason" in refused.output
    begun = run("moderate", "bulk", "demo", "approve", *chosen, "--yes")
    found = re.fullmatch(r"([0-9a-f]{16}): decided, 1 comment changed\.\n", begun.stdout)
    assert found is not None, begun.output
    held = [_status(open_store, row) for row in rows]
    assert held == [Status.PENDING, Status.APPROVED, Status.PENDING]
    assert "\tapprove\tdecided\t1 of 1\n" in run("moderate", "bulk-list", "demo").output
    assert run("moderate", "bulk-stop", "demo", found[1]).exit_code == 1
    assert "undone, 1 comment changed" in run("moderate", "bulk-undo", "demo", found[1]).output
    assert _status(open_store, rows[1]) is Status.PENDING
    assert run("moderate", "bulk", "demo", "spam", input="n\n").exit_code == 1
    assert "undone" in run("moderate", "bulk-list", "demo").output


def test_an_invalid_request_is_one_line_and_exit_code_1(run: Run) -> None:
    for arguments, word in (
        (("rule", "add", "demo"), "condition"),
        (("rule", "add", "demo", "--word", "a*b"), "words"),
        (("rule", "add", "demo", "--website", "https://x.example/"), "websites must be host names"),
        (("rule", "add", "demo", "--host", "x y"), "hosts must be host names"),
        (("rule", "test", "demo", "--host", "x.example:80"), "hosts must be host names"),
        (("rule", "remove", "demo", "none"), "There is no rule"),
        (("rule", "test", "demo"), "There is no rule"),
        (("rule", "list", "nowhere"), "There is no site nowhere."),
        (("moderate", "queue", "nowhere"), "There is no site nowhere."),
        (("moderate", "unban", "demo", "g:ann"), "g:ann is not banned."),
        (("moderate", "ban", "demo", "a" * 26), "This comment does not exist"),
        (("moderate", "ban", "demo", "a" * 25), "author must be the id of an author."),
        (("moderate", "undo", "demo", "a" * 26), "There is no audit log entry"),
        (("moderate", "thread", "demo", "nowhere", "--lock"), "There is no thread nowhere."),
        (("moderate", "approve", "demo", "a" * 26), "This comment does not exist"),
    ):
        told = run(*arguments)
        assert told.exit_code == 1, arguments
        assert word in told.output
        assert "Traceback" not in told.output


def test_a_ban_of_thousands_of_years_is_refused(run: Run, rows: list) -> None:
    told = run("moderate", "ban", "demo", rows[0].id, "--days", "999999999")
    assert told.exit_code == 2
    assert "--days" in told.output


def test_bans_are_listed_with_their_comment(run: Run, rows: list) -> None:
    refused = run("moderate", "ban", "demo", rows[0].id, "--network-days", "7")
    assert (refused.exit_code, "Ban the author without the network" in refused.output) == (1, True)
    refused = run("moderate", "ban", "demo", rows[0].id, "--mailbox")
    assert "Ban the author without the mailbox" in refused.output
    assert run("moderate", "ban", "demo", rows[0].id, "--days", "7").exit_code == 0
    line = run("moderate", "policy", "demo").output.splitlines()[-1].split("\t")
    begins = line.pop()
    assert (line[0], line[1], line[3], line[4]) == (
        "ban", rows[0].author.id, "", rows[0].author.name,
    )  # fmt: skip
    assert begins
    assert rows[0].body.startswith(begins)


def test_the_queue_shows_the_beginning_of_an_imported_comments_text(
    run: Run, export: Callable[..., Path]
) -> None:
    file = export(THREAD, post("1", message="<p>Buy &amp; <b>sell</b></p>"))
    assert run("import", "disqus", str(file), "--site", "demo").exit_code == 0
    told = run("moderate", "queue", "demo", "--status", "approved").output
    assert told.splitlines()[0].endswith("\tBuy & sell")


def test_a_rule_can_be_tried_before_and_after_it_is_added(run: Run, rows: list) -> None:
    tried = run("rule", "test", "demo", "--word", "number 1", "--action", "reject")
    assert tried.output == (
        f'{rows[1].id}\trejected\trule:tried\tthe text contains "number 1"\n'
        "Matched 1 of 3 comments. No changes made.\n"
    )
    run("rule", "add", "demo", "--id", "all", "--word", "number")
    assert "3 of 3 comments." in run("rule", "test", "demo").output
    assert "3 of 3 comments." in run("rule", "test", "demo", "all").output
    assert "2 of 2 comments." in run("rule", "test", "demo", "all", "--last", "2").output


def test_decisions_about_comments_are_made_and_logged(
    run: Run, rows: list, open_store: connection.Store
) -> None:
    held = run("moderate", "hold", "demo", rows[0].id, rows[1].id, "--reason", "to look at")
    assert held.output == f"{rows[0].id}\tpending\n{rows[1].id}\tpending\n"
    queue = run("moderate", "queue", "demo").output
    assert rows[0].id in queue
    assert "moderator: to look at" in queue
    assert "2 comments." in queue
    mixed = run("moderate", "approve", "demo", rows[0].id, "b" * 26)
    assert mixed.exit_code == 1
    assert _status(open_store, rows[0]) is Status.APPROVED
    log = run("moderate", "log", "demo", "--subject", rows[0].id).output.splitlines()
    assert [line.split("\t")[3] for line in log] == ["approve", "hold"]
    entry = log[0].split("\t")[0]
    assert run("moderate", "undo", "demo", entry).output == f"{rows[0].id}\tpending\n"
    for verb in ("reject", "spam", "approve", "hide", "restore", "pin", "unpin"):
        assert run("moderate", verb, "demo", rows[2].id).exit_code == 0, verb


def test_a_ban_by_comment_hides_comments_and_its_undo_restores_them(
    run: Run, rows: list, open_store: connection.Store
) -> None:
    told = run("moderate", "ban", "demo", rows[0].id, "--days", "3", "--hide")
    assert told.output.startswith("Banned g:ann.")
    assert {_status(open_store, row) for row in rows} == {Status.HIDDEN}
    assert "ban\tg:ann\t" in run("moderate", "policy", "demo").output
    assert run("moderate", "unban", "demo", "g:ann", "--restore").exit_code == 0
    assert {_status(open_store, row) for row in rows} == {Status.APPROVED}


@pytest.mark.parametrize("address", ["https://example.com/a/", "http://example.com/a?b=1#c"])
def test_a_thread_is_named_by_its_id_or_its_pages_url(
    run: Run, site: records.Site, open_store: connection.Store, address: str
) -> None:
    with open_store.context():
        sample_threads.post(site, "hello", thread="example.com/a")
    for given in ("example.com/a", address):
        assert run("moderate", "thread", "demo", given, "--lock").output.startswith("closed, ")
        assert run("thread", "set", "demo", given, "--no-category").exit_code == 0
        assert "1" in run("stats", "commenters", "demo", given, "--format", "csv").output
        assert run("recount", "demo", given).exit_code == 0
        assert run("compact", "demo", given, "--no-wait").output.startswith("Compacted 1 thread;")
    told = run("moderate", "thread", "demo", "https://example.com/b", "--lock")
    assert (told.exit_code, told.output) == (1, "Error: There is no thread example.com/b.\n")


def test_a_policy_is_shown_and_changed_part_by_part(
    run: Run, rows: list, open_store: connection.Store
) -> None:
    assert run("moderate", "policy", "demo").output == "policy\toff\nclose-after\t0\nreports\t3\n"
    run("moderate", "policy", "demo", "--policy", "first")
    changed = run("moderate", "policy", "demo", "--close-after", "30", "--reports", "5").output
    assert changed == "policy\tfirst\nclose-after\t30\nreports\t5\n"
    with open_store.context():
        assert rulebook.from_store("demo").close_after == 30
    locked = run("moderate", "thread", "demo", "page", "--lock", "--policy", "all")
    assert locked.output == "closed, policy: all\n"
    opened = run("moderate", "thread", "demo", "page", "--open", "--policy", "inherit")
    assert opened.output == "open, policy: inherited\n"


def test_authors_are_linked_listed_and_unlinked(
    run: Run, open_store: connection.Store, rows: list[records.Comment], site: records.Site
) -> None:
    with open_store.context():
        other = sample_threads.post(site, "another", author=sample_threads.author("bob"))
        dispatcher.deliver(
            counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS
        )
    linked = run("moderate", "link", "demo", rows[0].id, other.id, "--reason", "same person")
    assert linked.output == "g:ann\ng:bob\n"
    listed = run("moderate", "links", "demo", "g:bob").output
    assert listed.startswith("g:ann\tg:bob\tlink\t")
    assert run("moderate", "unlink", "demo", "g:bob", "g:ann").output == "g:bob\n"
    assert run("moderate", "links", "demo", "g:bob").output == ""
    assert run("moderate", "unlink", "demo", "g:bob", "g:ann").exit_code == 1
    assert run("moderate", "allow-claims", "demo", "g:bob").exit_code == 1
    assert run("moderate", "link", "demo", "g:bob", "g:bob").exit_code == 1

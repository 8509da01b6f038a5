"""Categories move by command, also after a kill; an upgrade stores the terms of older rows."""

import functools
from datetime import timedelta

import flask
import pytest

from comments.domain import categories, records
from comments.moderation import review_queue, thread_list
from comments.moderation.policy import thread_overrides
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows
from comments.tree.bulk import job_writes, recategorize
from comments.upkeep.migrations import upgrades
from tests.support.histories import category_oracle, counter_oracle
from tests.support.people import account_holders
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

NOW = sample_threads.START
FOOTBALL = ("cup", "derby", "final")


class Killed(BaseException):
    """An error that simulates the end of the process."""


@pytest.fixture
def filed(site: records.Site, store: object) -> records.Site:
    site = site_settings.change("demo", filed=("football", "football/women", "news"))
    names = (("football",), ("football/women",), ("football", "news"), ("news",))
    for minute, (thread, filing) in enumerate(zip((*FOOTBALL, "vote"), names, strict=True)):
        for part in range(2):
            now = NOW + timedelta(minutes=2 * minute + part)
            sample_threads.post(site, f"{thread}{part}", thread=thread, categories=filing, now=now)
    return site


def _lines(app: flask.Flask, term: str) -> list[str]:
    run = app.test_cli_runner().invoke
    shown = run(args=["thread", "list", "demo", "--category", term])
    assert shown.exit_code == 0, shown.output
    return [name for name in (*FOOTBALL, "vote") if name in shown.output]


def _move(app: flask.Flask, old: str, new: str) -> tuple[int, str]:
    done = app.test_cli_runner().invoke(args=["site", "move-category", "demo", old, new])
    return done.exit_code, done.output


@pytest.mark.usefixtures("filed")
def test_commands_list_a_category_and_move_it(app: flask.Flask) -> None:
    assert _lines(app, "football") == ["cup", "derby", "final"]
    assert _lines(app, "*/women") == ["derby"]
    assert _move(app, "Football", "sport/football") == (0, "Moved 3 threads and 6 comments.\n")
    assert site_settings.get("demo").categories == (
        "news", "sport/football", "sport/football/women",
    )  # fmt: skip
    assert _lines(app, "football") == []
    assert _lines(app, "sport") == ["cup", "derby", "final"]
    queue = ["moderate", "queue", "demo", "--status", "approved", "--category", "*/women"]
    shown = app.test_cli_runner().invoke(args=queue).output
    assert [text for text in ("derby0", "derby1", "cup0") if text in shown] == ["derby0", "derby1"]
    counter_oracle.assert_counted()


@pytest.mark.usefixtures("filed")
def test_invalid_moves_are_refused_and_change_nothing(app: flask.Flask) -> None:
    before = category_oracle.filed("demo")
    for old, new, said in (
        ("football", "football/men", "below itself"),
        ("football", "a/b/c", "at most 3 parts"),
        ("football", "<b>", "name of a category"),
        ("*/women", "women", "name of a category"),
    ):
        status, output = _move(app, old, new)
        assert (status, said in output) == (1, True), output
    assert app.test_cli_runner().invoke(
        args=["thread", "list", "demo", "--category", "a//b"]
    ).exit_code == 1  # fmt: skip
    assert category_oracle.filed("demo") == before


@pytest.mark.usefixtures("filed")
def test_a_repetition_finishes_a_killed_move(
    app: flask.Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, left = thread_overrides.change_details, [1]

    def killed(*arguments: object, **named: object) -> object:
        if not left:
            raise Killed
        left.pop()
        return change(*arguments, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(thread_overrides, "change_details", killed)
        with pytest.raises(Killed):
            _move(app, "football", "sport")
    moved = [names for names in category_oracle.filed("demo").values() if "sport" in str(names)]
    assert len(moved) == 1
    assert _move(app, "football", "sport") == (0, "Moved 2 threads and 4 comments.\n")
    category_oracle.assert_listed(site_settings.get("demo"))
    category_oracle.assert_settled()
    counter_oracle.assert_counted()


def _forget_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write all rows as an older release did."""
    with monkeypatch.context() as patch:
        patch.setattr(categories, "terms", lambda _: [])
        for kind, key in (
            ("Thread", comment_rows.thread_key_of),
            ("Comment", comment_rows.comment_key),
        ):
            found = reads.fetch(reads.Query(kind, keys_only=True))
            rows = reads.get_multi([key(message.key.path[-1].name) for message in found])
            write = ownership.Writes("tree", put=tuple(rows))
            transactions.transaction(functools.partial(transactions.apply, write))


def _listed(term: str) -> tuple[int, int]:
    """Return the numbers of threads and of comments that a term finds."""
    secret = sample_threads.SETTINGS.secret
    wanted = review_queue.QueueFilter("demo", (records.Status.APPROVED,), category=term)
    threads = thread_list.threads("demo", term, secret=secret).threads
    return len(threads), len(review_queue.page(wanted, secret=secret).cases)


def test_an_upgrade_stores_the_terms_of_older_rows_also_after_a_kill(
    filed: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    _forget_terms(monkeypatch)
    assert _listed("football") == (0, 0)
    upgrades.begin()

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(job_writes, "recategorize", killed)
        upgrades.go_on(steps=None)
        with pytest.raises(Killed):
            recategorize.finish(now=NOW, steps=100)
    upgrades.go_on(steps=None)
    recategorize.finish(now=NOW, steps=100)
    assert _listed("football") == (3, 6)
    assert _listed("*/women") == (1, 2)
    category_oracle.assert_listed(filed)
    counter_oracle.assert_counted()


def test_the_console_filters_pages_and_the_queue(filed: records.Site, app: flask.Flask) -> None:
    account_holders.account("bob", account_holders.moderator())
    desk = Desk(app, "bob")
    for page in ("/threads?", "/queue?status=approved&"):
        shown = desk.page(f"{page}category=*/women")
        assert 'value="*/women"' in shown
        assert [name for name in ("derby", "cup", "vote") if f"thread={name}" in shown] == ["derby"]

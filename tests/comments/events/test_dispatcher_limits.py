"""Each delivery's commits stay within limits, even with the maximum number of categories.

Datastore accepts 10 MiB in one commit, and its older versions accept at most 500 writes.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from comments.domain import categories, records
from comments.domain.moderation import classifier_verdicts
from comments.events import (
    dispatcher,
    message_queue,
    outbox,
    safe_http,
    webhook_endpoints,
    webhooks,
)
from comments.store import connection, ownership
from comments.tree.bulk import recategorize
from comments.tree.counters import totals
from comments.upkeep import wiring
from tests.support.histories import counter_oracle
from tests.support.store_interceptors import InterceptorSlot
from tests.support.threads import sample_threads

NOW = sample_threads.START + timedelta(days=1)
MOST_WRITES = 500
MOST_BYTES = 10 << 20
# The longest possible names in four-byte letters, with no part in common.
NAMES = [
    "/".join([f"{chr(0x20000 + n) * (categories.LONGEST - 1)}{n}"] * categories.DEEPEST)
    for n in range(2 * categories.MOST)
]
BEFORE, AFTER = NAMES[: categories.MOST], NAMES[categories.MOST :]
PAGE = records.ThreadName("demo", "p" * 500)


class Commits:
    """A recorder for the writes and bytes in each commit, and for the number of event reads."""

    def __init__(self) -> None:
        self.writes: list[int] = []
        self.bytes: list[int] = []
        self.event_reads = 0

    def __call__(self, method: str, request: Any, proceed: Any) -> Any:
        if method == "Commit":
            self.writes.append(len(request.mutations))
            self.bytes.append(request.ByteSize())
        if method == "Lookup":
            self.event_reads += sum(key.path[0].kind == "Event" for key in request.keys)
        return proceed()


@pytest.fixture
def commits(interceptor: InterceptorSlot) -> Commits:
    return interceptor.use(Commits())


def _node(number: int) -> records.ImportedComment:
    """Return a comment with an author and a day that no other comment has."""
    created = sample_threads.START + timedelta(days=number)
    return sample_threads.node(f"{number:016}", author=f"g:{number:026}", created=created)


def _deliver() -> dispatcher.DeliveryCounts:
    return dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)


def _assert_counted(commits: Commits) -> None:
    """Check that everything was counted, using only commits that Datastore accepts."""
    assert max(commits.writes) <= MOST_WRITES
    assert max(commits.bytes) <= MOST_BYTES
    assert counter_oracle.events() == []
    counter_oracle.assert_all_counted()


def test_a_small_batch_of_events_leaves_room_for_every_handlers_writes() -> None:
    # For each event, the commit writes a mark, a row of thread counts, a mark in an inbox, an event
    # for the declared counters, and a message for each hook and classifier. It also writes counter
    # rows.
    assert (
        dispatcher.FITTING * (4 + webhook_endpoints.MOST + classifier_verdicts.MOST)
        + dispatcher.MOST_ROWS
        <= dispatcher.MOST_WRITES
        == MOST_WRITES
    )
    assert outbox.MOST_ROWS <= dispatcher.MOST_ROWS
    assert dispatcher.MOST_BYTES < MOST_BYTES


@pytest.mark.slow
def test_an_import_of_many_authors_and_days_writes_several_events(
    store: connection.Store, site: records.Site, commits: Commits
) -> None:
    sample_threads.store_imported(PAGE, _node(0))
    recategorize.change(PAGE, BEFORE, now=NOW)
    _deliver()
    nodes = [_node(number) for number in range(1, 101)]
    assert sample_threads.store_imported(PAGE, *nodes) == 100
    events = counter_oracle.events()
    assert len(events) > 1
    # Repeating the import adds nothing and writes no event.
    assert sample_threads.store_imported(PAGE, *nodes) == 0
    assert counter_oracle.events() == events
    assert _deliver() == dispatcher.DeliveryCounts(len(events), 0)
    assert totals.of_site("demo")["participants"] == 101
    _assert_counted(commits)


@pytest.mark.slow
@pytest.mark.embedded  # Under load, another emulator's transactions run again and read again
def test_large_events_are_read_about_once_each(
    store: connection.Store, site: records.Site, commits: Commits
) -> None:
    for first in range(0, 8 * 100, 100):
        sample_threads.store_imported(PAGE, *map(_node, range(first, first + 100)))
    events = counter_oracle.events()
    commits.event_reads = 0
    assert _deliver() == dispatcher.DeliveryCounts(len(events), 0)
    assert len(commits.writes) > len(events)  # No transaction could handle several of the events
    # All events are read by the first transaction, and few more than the next one by the others.
    assert commits.event_reads <= 3 * len(events)
    _assert_counted(commits)


@pytest.mark.slow
def test_a_change_from_most_categories_to_as_many_others_writes_several_events(
    store: connection.Store, site: records.Site, commits: Commits
) -> None:
    sample_threads.store_imported(PAGE, _node(0))
    recategorize.change(PAGE, BEFORE, now=NOW)
    sample_threads.store_imported(
        PAGE, *(_node(number) for number in range(1, recategorize.AT_ONCE))
    )
    _deliver()
    assert recategorize.change(PAGE, AFTER, now=NOW) == recategorize.AT_ONCE
    events = counter_oracle.events()
    assert len(events) > 1
    assert _deliver() == dispatcher.DeliveryCounts(len(events), 0)
    _assert_counted(commits)


def test_posts_in_most_categories_of_a_site_with_most_hooks_fit_one_commit(
    store: connection.Store, site: records.Site, commits: Commits
) -> None:
    site = sample_threads.filing(site, *BEFORE)
    client = safe_http.HttpClient(resolver=lambda _host: ["93.184.215.14"])
    secret = webhooks.secret(bytes(32))
    for number in range(webhook_endpoints.MOST):
        url = f"https://hooks.example/{number}"
        made = webhook_endpoints.Registered(f"{number}", url, (secret,), webhooks.PUBLIC_TYPES, NOW)
        webhook_endpoints.add("demo", made, client)
    posts = 2 * dispatcher.FITTING
    for number in range(posts):
        sample_threads.post(site, f"{number}", thread=PAGE.id, categories=tuple(BEFORE))
    assert _deliver() == dispatcher.DeliveryCounts(posts, 0)
    assert max(commits.writes) > dispatcher.MOST_ROWS  # Messages and counters share this commit
    _assert_counted(commits)


@pytest.mark.slow
def test_events_with_many_messages_take_several_commits(
    store: connection.Store, site: records.Site, commits: Commits
) -> None:
    posts = dispatcher.AT_ONCE // 2
    for number in range(posts):
        sample_threads.post(site, f"{number}")

    def written(events: Sequence[outbox.Event]) -> ownership.Writes:
        queues = [f"q{number}" for number in range(MOST_WRITES // posts)]
        rows = [
            row for event in events for row in message_queue.new_rows(event.id, queues, "", at=NOW)
        ]
        return message_queue.writes(rows)

    handlers = (*wiring.HANDLERS, dispatcher.Exact("many", written))
    events = counter_oracle.events()
    commits.writes.clear()
    assert dispatcher.deliver(events, now=NOW, handlers=handlers).delivered == posts
    assert len(commits.writes) == -(-posts // dispatcher.FITTING)
    _assert_counted(commits)


def test_large_events_take_several_commits(
    store: connection.Store, site: records.Site, commits: Commits
) -> None:
    posts = dispatcher.FITTING + 5
    for number in range(posts):
        sample_threads.post(site, f"{number}")

    def written(events: Sequence[outbox.Event]) -> ownership.Writes:
        content = "x" * (dispatcher.MOST_BYTES // (posts - 1))
        rows = [
            row
            for event in events
            for row in message_queue.new_rows(event.id, ["q"], content, at=NOW)
        ]
        return message_queue.writes(rows)

    handlers = (*wiring.HANDLERS, dispatcher.Exact("large", written))
    commits.writes.clear()
    assert (
        dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=handlers).delivered == posts
    )
    assert len(commits.writes) == 2
    _assert_counted(commits)

"""Test transactions' retries, deadlines and ownership checks, and how they handle NDB's quirks."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from comments import errors
from comments.domain import records
from comments.moderation.policy import rulebook
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows, moderation_rows
from comments.tree.lists import ordered_query
from datastore_emulator import faults, inprocess
from tests.support import datastores
from tests.support.store_interceptors import TRANSIENT, Faults
from tests.support.threads import sample_threads

KEY = "0123456789abcdef"


@pytest.mark.parametrize("status", TRANSIENT)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["Lookup", "Commit"])
@pytest.mark.usefixtures("brief_doubt")
def test_a_post_whose_store_call_fails_once_is_stored_and_counted_once(
    store: connection.Store,
    site: records.Site,
    faults: Faults,
    method: str,
    when: str,
    status: grpc.StatusCode,
) -> None:
    parent = sample_threads.post(site, "parent")
    faults.plan[method, faults.calls[method] + 1] = (when, status)
    sample_threads.post(site, "reply", parent.id)
    rows = ordered_query.thread(sample_threads.name_of(site))
    assert sample_threads.texts(rows) == ["parent", "reply"]
    assert rows[0].child_count == 1


def test_a_post_whose_answer_is_lost_several_times_is_stored_once(
    store: connection.Store, site: records.Site, faults: Faults
) -> None:
    start = faults.calls["Commit"]
    for attempt in range(1, 6):
        faults.plan["Commit", start + attempt] = ("after", grpc.StatusCode.UNAVAILABLE)
    sample_threads.post(site, "once")
    assert sample_threads.listed(site) == ["once"]


@pytest.mark.embedded  # The first read begins the transaction only here
def test_each_attempt_of_a_transaction_names_the_previous_one(
    store: connection.Store, site: records.Site, faults: Faults
) -> None:
    rulebook.current("demo")  # Caches the rules
    sample_threads.post(site, "first")  # The first comment of a thread takes one more call
    faults.requests.clear()
    read, commit = faults.calls["Lookup"], faults.calls["Commit"]
    faults.plan |= {
        ("Commit", commit + 1): ("before", grpc.StatusCode.ABORTED),
        ("Lookup", read + 2): ("before", grpc.StatusCode.UNAVAILABLE),
        ("Commit", commit + 2): ("before", grpc.StatusCode.ABORTED),
    }
    sample_threads.post(site, "hello")
    sample_threads.post(site, "another", key=KEY)
    asked = [each.read_options for method, each in faults.requests if method == "Lookup"]
    begun = [each.new_transaction for each in asked if each.HasField("new_transaction")]
    previous = [each.read_write.previous_transaction for each in begun]
    first, second, *_ = [each.transaction for method, each in faults.requests if method == "Commit"]
    assert previous == [b"", first, first, second, b""]


def test_an_edit_whose_answer_was_lost_is_applied_once_without_a_conflict(
    store: connection.Store, site: records.Site, faults: Faults
) -> None:
    row = sample_threads.post(site, "old")
    faults.plan["Commit", faults.calls["Commit"] + 1] = ("after", grpc.StatusCode.UNAVAILABLE)
    edited = own_comment.edit(
        row.id,
        author_id=row.author.id,
        body="new",
        revision=row.revision,
        settings=sample_threads.SETTINGS,
        now=sample_threads.START,
    )
    assert edited.revision == row.revision + 1
    assert sample_threads.listed(site) == ["new"]


def test_a_retraction_whose_answer_was_lost_is_applied_once(
    store: connection.Store, site: records.Site, faults: Faults
) -> None:
    row = sample_threads.post(site, "old")
    faults.plan["Commit", faults.calls["Commit"] + 1] = ("after", grpc.StatusCode.UNAVAILABLE)
    gone = own_comment.retract(
        row.id, author_id=row.author.id, revision=row.revision, now=sample_threads.START
    )
    assert gone.revision == row.revision + 1
    assert sample_threads.listed(site) == []


def test_a_store_that_keeps_failing_is_overloaded_at_the_deadline(
    store: connection.Store, site: records.Site, faults: Faults, short_deadline: connection.Store
) -> None:
    faults.always = {"Commit"}
    with pytest.raises(errors.Overloaded) as refused:
        sample_threads.post(site, "late")
    assert refused.value.retry_after > 0
    faults.always = set()
    assert sample_threads.listed(site) == []
    sample_threads.post(site, "afterwards")
    assert sample_threads.listed(site) == ["afterwards"]


def test_reads_are_retried_too(store: connection.Store, site: records.Site, faults: Faults) -> None:
    sample_threads.post(site, "here")
    for method in ("RunQuery", "Lookup"):
        faults.plan[method, faults.calls.get(method, 0) + 1] = (
            "before",
            grpc.StatusCode.UNAVAILABLE,
        )
    assert sample_threads.listed(site) == ["here"]
    assert reads.get(comment_rows.site_key("demo")) is not None


def test_a_permanent_refusal_is_not_retried(
    store: connection.Store, site: records.Site, faults: Faults
) -> None:
    faults.plan["RunQuery", faults.calls.get("RunQuery", 0) + 1] = (
        "before",
        grpc.StatusCode.INVALID_ARGUMENT,
    )
    before = faults.calls.get("RunQuery", 0)
    with pytest.raises(errors.Overloaded, match="refused"):
        sample_threads.listed(site)
    assert faults.calls["RunQuery"] == before + 1


def test_after_a_failed_transaction_reads_come_from_the_store(
    store: connection.Store, site: records.Site
) -> None:
    def body() -> None:
        row = reads.get(comment_rows.site_key("demo"))
        row.origins = ["https://never-stored.example"]
        transactions.apply(ownership.Writes("site_settings", put=(row,)))
        raise errors.Conflict("changed our mind")

    with pytest.raises(errors.Conflict):
        transactions.transaction(body)
    assert reads.get(comment_rows.site_key("demo")).origins == ["http://localhost:8080"]


def test_a_change_by_another_thread_between_two_reads_is_visible(
    store: connection.Store, site: records.Site
) -> None:
    def change() -> None:
        with store.context():
            site_settings.change("demo", origins=["https://new.example"])

    assert reads.get(comment_rows.site_key("demo")).origins == ["http://localhost:8080"]
    with ThreadPoolExecutor(1) as pool:
        pool.submit(change).result()
    assert reads.get(comment_rows.site_key("demo")).origins == ["https://new.example"]


def test_a_query_inside_a_transaction_is_part_of_it(
    store: connection.Store, site: records.Site
) -> None:
    sample_threads.post(site, "1")
    inner = transactions.transaction(lambda: sample_threads.listed(site))
    assert inner == sample_threads.listed(site) == ["1"]
    assert transactions.snapshot(lambda: sample_threads.listed(site)) == ["1"]


def test_other_writes_cannot_join_an_owners_writes(
    store: connection.Store, site: records.Site
) -> None:
    one, two = (sample_threads.post(site, text) for text in ("one", "two"))

    def body() -> None:
        rows = reads.get_multi([comment_rows.comment_key(row.id) for row in (one, two)])
        for row in rows:
            row.body = "changed"
        transactions.apply(ownership.Writes("tree", put=(rows[0],)))
        transactions.apply(ownership.Writes("site_settings", put=(rows[1],)))

    with pytest.raises(errors.UnownedWrite):
        transactions.transaction(body)
    assert sample_threads.listed(site) == ["one", "two"]


def test_an_insert_of_an_existing_entity_runs_the_body_again(
    store: connection.Store, site: records.Site
) -> None:
    row = sample_threads.post(site, "here")
    runs: list[bool] = []

    def body() -> None:
        runs.append(transactions.may_have_run())
        if not runs[-1]:
            stored = reads.get(comment_rows.comment_key(row.id))
            stored.body = "in its place"
            transactions.apply(ownership.Writes("tree", insert=(stored,)))

    transactions.transaction(body)
    assert runs == [False, True]
    assert sample_threads.listed(site) == ["here"]


def test_only_a_commit_that_may_have_been_applied_is_looked_up(
    store: connection.Store, site: records.Site, faults: Faults
) -> None:
    runs: list[bool] = []

    def body() -> None:
        runs.append(transactions.may_have_run())
        reads.get(comment_rows.site_key("demo"))

    start = faults.calls.get("Commit", 0)
    faults.plan["Commit", start + 1] = ("before", grpc.StatusCode.ABORTED)
    faults.plan["Commit", start + 2] = ("after", grpc.StatusCode.UNAVAILABLE)
    faults.plan["Commit", start + 3] = ("before", grpc.StatusCode.ABORTED)
    transactions.transaction(body)
    transactions.transaction(body)
    assert runs == [False, False, True, True, False]


def test_transactions_cannot_be_nested(store: connection.Store) -> None:
    with pytest.raises(RuntimeError, match="never nested"):
        transactions.transaction(lambda: transactions.transaction(lambda: None))


def test_a_transaction_without_reads_and_writes_makes_no_call(
    store: connection.Store, faults: Faults
) -> None:
    assert transactions.transaction(lambda: "done") == "done"
    assert faults.requests == []


def test_a_transaction_may_begin_with_a_query_or_a_write(
    store: connection.Store, site: records.Site, faults: Faults
) -> None:
    sample_threads.post(site, "1")
    faults.requests.clear()

    def write() -> None:
        row = comment_rows.SiteRow(key=comment_rows.site_key("other"), digits="AB", width=2)
        transactions.apply(ownership.Writes("site_settings", put=(row,)))

    assert transactions.transaction(lambda: sample_threads.listed(site)) == ["1"]
    transactions.transaction(write)
    assert [method for method, _ in faults.requests] == [
        "BeginTransaction", "RunQuery", "Commit", "Commit"
    ]  # fmt: skip
    assert reads.get(comment_rows.site_key("other")).width == 2


@pytest.mark.embedded  # The first read begins the transaction only here
def test_a_failing_body_releases_its_locks(
    store: connection.Store, site: records.Site, faults: Faults
) -> None:
    def body() -> None:
        reads.get(comment_rows.site_key("demo"))
        raise errors.Conflict("changed our mind")

    faults.requests.clear()
    with pytest.raises(errors.Conflict):
        transactions.transaction(body)
    assert [method for method, _ in faults.requests] == ["Lookup", "Rollback"]


def _end_at_the_deadline(store: connection.Store) -> None:
    """Run a transaction that reads a row and misses its deadline."""

    def body() -> None:
        for _ in range(2):  # The emulator releases the locks of a transaction with one call sooner
            reads.get(comment_rows.site_key("demo"))
        time.sleep(max(0.0, (connection.state.end or 0.0) - time.monotonic()))
        raise errors.Conflict("late")

    with store.context(), connection.within(0.2), pytest.raises(errors.Conflict):
        transactions.transaction(body)


def test_a_rollback_that_takes_longer_than_the_rest_of_the_deadline_is_completed(
    engine: inprocess.Engine, store: connection.Store, site: records.Site
) -> None:
    late = datastores.Embedded(engine).connect()
    slow = {"rpc": "Rollback", "delay": 0.05}
    engine.install_faults(faults.Plan.parse({"seed": 1, "rules": [slow]}))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_end_at_the_deadline, late).result()
    engine.install_faults(None)
    with connection.within(2.0):
        site_settings.change("demo", options={"forms": True})


@pytest.mark.parametrize("verb", ["put", "insert", "delete"])
def test_only_its_owner_may_write_a_kind(
    store: connection.Store, faults: Faults, verb: str
) -> None:
    row = moderation_rows.RulebookRow(key=moderation_rows.rulebook_key("demo"), content="{}")
    writes = ownership.Writes("posting", **{verb: (row.key if verb == "delete" else row,)})  # type: ignore[arg-type]
    faults.requests.clear()
    with pytest.raises(errors.UnownedWrite):
        transactions.transaction(lambda: transactions.apply(writes))
    assert faults.requests == []


def test_apply_needs_a_transaction(store: connection.Store) -> None:
    with pytest.raises(errors.UnownedWrite):
        transactions.apply(ownership.Writes("site_settings"))


def test_a_row_lock_admits_one_thread_at_a_time_and_is_dropped_afterwards(
    open_store: connection.Store,
) -> None:
    inside, most = 0, 0
    guard = threading.Lock()

    def work(_: int) -> None:
        nonlocal inside, most
        with open_store.line("busy"):
            with guard:
                inside += 1
                most = max(most, inside)
            threading.Event().wait(0.001)
            with guard:
                inside -= 1

    open_store.deadline = 20
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: _with_deadline(open_store, work, n), range(40)))
    assert most == 1
    assert open_store._lines._locks == {}


def _with_deadline(store: connection.Store, work: Callable[[int], None], n: int) -> None:
    with connection.within(store.deadline):
        work(n)


def test_twenty_parallel_retries_are_one_comment(
    open_store: connection.Store, site: records.Site
) -> None:
    barrier = threading.Barrier(20)

    def send(_: int) -> str:
        with open_store.context():
            barrier.wait(60)
            return sample_threads.post(site, "once", key=KEY).id

    with ThreadPoolExecutor(20) as pool:
        ids = set(pool.map(send, range(20)))
    assert len(ids) == 1
    with open_store.context():
        assert sample_threads.listed(site) == ["once"]


def test_a_failed_transaction_stores_nothing(
    store: connection.Store, site: records.Site, tmp_path: Path
) -> None:
    parent = sample_threads.post(site, "parent")

    def body() -> None:
        raise errors.Conflict("no")

    with pytest.raises(errors.Conflict):
        transactions.transaction(body)
    assert ordered_query.thread(sample_threads.name_of(site))[0].child_count == 0
    assert parent.child_count == 0

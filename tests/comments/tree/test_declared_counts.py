"""Deliveries count each change once in declared counters, at the stated cost."""

import itertools
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from comments import errors
from comments.domain import categories, records
from comments.domain.counters import declared_counters
from comments.domain.counters.declared_counters import CountPlace
from comments.events import dispatcher, outbox
from comments.store import connection, reads
from comments.store.models import counter_rows
from comments.tree.bulk import recategorize
from comments.tree.counters.declared import declarations, declared_backfill, declared_counts
from comments.upkeep import wiring
from comments.upkeep.integrity import recount
from datastore_emulator import inprocess, testing
from tests.support.histories import counter_drift, counter_oracle, declared_oracle
from tests.support.store_interceptors import Commits, InterceptorSlot
from tests.support.threads import sample_threads, sample_votes

NOW = sample_threads.START + timedelta(days=1)
PAGE = records.ThreadName("demo", "page")


@pytest.fixture
def faults(interceptor: InterceptorSlot) -> Commits:
    return interceptor.use(Commits())


def _declare(name: str, where: tuple[str, ...] = (), by: tuple[str, ...] = (), **more: str) -> None:
    declared = declared_counters.declare(name, where, by, **more)
    declarations.add("demo", declared, now=NOW)
    declared_backfill.complete("demo")


def _deliver_all() -> None:
    while events := counter_oracle.events():
        dispatcher.deliver(events, now=NOW, handlers=wiring.HANDLERS)


def test_a_counter_follows_every_kind_of_change(
    store: connection.Store, site: records.Site
) -> None:
    site = sample_threads.filing(site, "news", "sport")
    _declare("any", (), ("category", "author"))
    _declare("liked", ("score >= 1",), ("thread",), value="up")
    ann = sample_threads.author("ann")
    row = sample_threads.post(site, "text", author=ann, categories=("news",))
    _deliver_all()
    assert declared_oracle.stored()["any"] == {CountPlace("news", "", "", "g:ann"): 1}
    sample_votes.vote(row, "bob")
    sample_votes.count_all()
    assert declared_oracle.stored()["liked"] == {CountPlace(thread="/page"): 1}
    recategorize.change(PAGE, ["sport"], now=NOW)
    _deliver_all()
    assert declared_oracle.stored()["any"] == {CountPlace("sport", "", "", "g:ann"): 1}
    sample_threads.retract(row)
    _deliver_all()
    assert declared_oracle.stored() == {"any": {}, "liked": {}}
    declared_oracle.assert_counted()


def test_a_site_without_counters_pays_nothing_and_each_counter_one_row(
    store: connection.Store, site: records.Site, engine: inprocess.Engine
) -> None:
    def cost() -> tuple[int, int]:
        sample_threads.post(site, f"{next(numbers)}", author=sample_threads.author("ann"))
        with testing.meter(engine) as meter:
            dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)
        return meter.reads, meter.writes

    numbers = itertools.count()
    cost()  # Makes the rows
    before = cost()
    for used in range(1, 4):
        _declare(f"any-{used}", (), ("day", "thread", "author"))
        assert cost() == (before[0] + used, before[1] + used)
    _declare("never", ("status = spam",))
    assert cost() == (before[0] + 3, before[1] + 3)


def test_the_counters_of_other_sites_stay_the_same(
    store: connection.Store, site: records.Site
) -> None:
    declarations.add("demo2", declared_counters.declare("any"), now=NOW)
    sample_threads.post(site, "text")
    _deliver_all()
    assert declared_oracle.stored("demo2") == {"any": {}}


def _nodes(number: int) -> list[records.ImportedComment]:
    return [
        sample_threads.node(
            f"{n:016}", author=f"g:{n}", created=sample_threads.START + timedelta(days=n)
        )
        for n in range(number)
    ]


@pytest.mark.parametrize("faulty", ["", "before", "after"])
def test_changes_of_more_numbers_than_fit_into_a_commit_are_counted_once(
    store: connection.Store,
    site: records.Site,
    faults: Commits,
    faulty: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox, "MOST_ROWS", 30)
    for number in range(3):
        _declare(f"any-{number}", (), ("day", "thread", "author"))
    _declare("total")
    sample_threads.store_imported(PAGE, *_nodes(8))
    events = counter_oracle.events()
    commits = 0
    while counter_oracle.events():
        faults.plan = [faulty] * 2
        _ = dispatcher.deliver(sorted(counter_oracle.events()), now=NOW, handlers=wiring.HANDLERS)
        faults.plan = []
        commits += 1
        # A repeated delivery finds nothing.
        dispatcher.deliver(events, now=NOW, handlers=wiring.HANDLERS)
        assert recount.site("demo", tell=print, fixes=False) == 0
    assert commits > 1
    declared_oracle.assert_counted()
    assert declared_oracle.stored()["total"] == {CountPlace(): 8}


@pytest.mark.slow
def test_the_most_counters_with_the_most_categories_fit_into_commits_of_datastore(
    store: connection.Store, site: records.Site, interceptor: InterceptorSlot
) -> None:
    writes: list[int] = []

    def recorded(method: str, request: Any, proceed: Any) -> Any:
        writes.extend([len(request.mutations)] if method == "Commit" else [])
        return proceed()

    interceptor.use(recorded)
    for number in range(declared_counters.MOST):
        declared = declared_counters.declare(f"any-{number}", (), ("category", "thread", "author"))
        declarations.add("demo", declared, now=NOW)
    with pytest.raises(errors.Conflict):
        declarations.add("demo", declared_counters.declare("more"), now=NOW)
    declared_backfill.complete("demo")
    sample_threads.store_imported(PAGE, *_nodes(4))
    _deliver_all()
    names = [f"{number}/b/c" for number in range(categories.MOST)]
    recategorize.change(PAGE, names, now=NOW)
    _deliver_all()
    assert max(writes) <= dispatcher.MOST_WRITES
    declared_oracle.assert_counted()
    places = declared_oracle.stored()["any-0"]
    assert len(places) == 4 * declared_counters.MOST_CATEGORIES


def test_what_is_left_of_an_event_is_not_counted_for_a_removed_or_newer_counter(
    store: connection.Store, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MOST_ROWS", 6)
    _declare("old", (), ("day", "author"))
    _declare("kept", (), ("day", "author"))
    sample_threads.store_imported(PAGE, *_nodes(8))
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)
    assert any(event.endswith(".d1") for event in counter_oracle.events())
    declarations.remove("demo", "old", now=NOW)
    _declare("new", (), ("day", "author"))
    changed = declared_counters.declare("kept", (), ("author",))
    declarations.change("demo", changed, now=NOW)
    _deliver_all()
    declared_backfill.complete("demo")
    declared_oracle.assert_counted()
    assert {name: sum(found.values()) for name, found in declared_oracle.stored().items()} == {
        "kept": 8,
        "new": 8,
    }


@pytest.mark.parametrize("more", [1, -1, 5])
def test_a_drifted_number_is_shown_and_repaired(
    store: connection.Store, site: records.Site, more: int
) -> None:
    _declare("any", (), ("day", "thread"))
    sample_threads.post(site, "text")
    _deliver_all()
    (name,) = declared_counts.stored_amounts("demo", declarations.of_site("demo").counters)
    counter_drift.add_declared("demo", name, more)
    found = counter_drift.recount_all(fixes=False)
    assert [(each.scope.kind, each.name, each.stored, each.expected) for each in found] == [
        ("counter", "any", 1 + more, 1)
    ]
    assert (found[0].scope.place, found[0].scope.day) == ("demo/page", "2026-01-02")
    assert counter_drift.recount_all() == found
    assert counter_drift.recount_all() == []
    declared_oracle.assert_counted()


def test_the_stored_declarations_never_change_their_form(
    store: connection.Store, site: records.Site
) -> None:
    _declare("any", ("up >= 5", "status = approved"), ("day", "category"), value="score")
    row = reads.get(counter_rows.site_counter_key("demo"))
    stored = msgspec.json.decode(row.declared)
    assert stored.pop("mended")
    assert stored == {
        "counters": [
            {
                "declaration": {
                    "name": "any",
                    "where": [["up", ">=", 5], ["status", "=", "approved"]],
                    "by": ["category", "day"],
                    "sum": "score",
                },
                "generation": 1,
                "is_complete": True,
            }
        ],
        "last": 1,
    }

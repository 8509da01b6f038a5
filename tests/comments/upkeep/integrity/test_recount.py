"""A recount finds exactly the drifted counters, repairs each once, and disturbs no other work."""

from typing import Any

import pytest

from comments.domain import records
from comments.domain.counters import counting
from comments.notifications import reader_follows, thread_followers
from comments.posting import own_comment
from comments.store import connection, ownership, reads, transactions
from comments.store.large_sets import set_compaction
from comments.store.models import counter_rows, event_rows, schema
from comments.tree.counters import counter_repair, sharding, totals
from comments.upkeep.integrity import recount
from comments.upkeep.integrity.recount import Difference
from tests.support import prepared_stores
from tests.support.histories import counter_drift, counter_oracle
from tests.support.threads import sample_threads

HERE = counting.thread_scope("demo/page")
SITE = counting.site_scope("demo")
DAY = "2026-01-02"
MONTH = counting.month_scope("demo", "demo/page", DAY)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    return prepared_stores.grown(tmp_path_factory, counter_drift.grown)


def _one_more(scope: counting.Scope, comments: int, people: int) -> list[Difference]:
    return [
        Difference(scope, "approved", comments, comments + 1),
        Difference(scope, "participants", people, people + 1),
    ]


def _places_of(author: str) -> list[counting.Scope]:
    """Return an author's scopes on "page" that are counted from events."""
    return [
        counting.author_scope("demo", author),
        *(counting.category_scope("demo", each, author) for each in ("news", "sport")),
        *(counting.day_scope("demo", DAY, each, author) for each in ("", "news", "sport")),
    ]


def test_a_recount_of_exact_counters_finds_nothing(
    counted_rows: dict[str, records.Comment],
) -> None:
    assert counter_drift.recount_all() == []


@pytest.mark.parametrize("more", [1, -1, 7])
def test_a_drifted_number_is_shown_repaired_and_not_found_again(
    counted_rows: dict[str, records.Comment], more: int
) -> None:
    counter_drift.plant(counter_drift.thread_row(), approved=more, listed=-more)
    found = [
        Difference(HERE, "approved", 7 + more, 7),
        Difference(HERE, "listed", 8 - more, 8),
    ]
    assert counter_drift.recount_all(fixes=False) == [
        *found,
        Difference(SITE, "approved", 15, 15 + more),
    ]
    assert counter_drift.recount_all() == found
    assert counter_drift.recount_all() == []
    counter_oracle.assert_all_counted()


@pytest.mark.parametrize("folded", [False, True])
def test_a_followed_page_without_comments_is_recounted(
    counted_rows: dict[str, records.Comment], *, folded: bool
) -> None:
    silent = records.ThreadName("demo", "silent")
    reader_follows.follow(silent, "s:ann", now=counter_drift.NOW)
    reader_follows.follow(records.ThreadName("demo2", "silent"), "s:ann", now=counter_drift.NOW)
    if folded:
        set_compaction.compact(thread_followers.set_of(silent))
    counter_drift.deliver()
    assert counter_drift.recount_all() == []
    counter_drift.delete(counter_rows.thread_counter_key(silent, 0))
    here = counting.thread_scope("demo/silent")
    assert counter_drift.recount_all() == [Difference(here, "followers", 0, 1)]
    assert counter_drift.recount_all() == []
    assert totals.of_threads([silent]) == [{"followers": 1}]


def test_counters_of_sites_and_authors_are_repaired_too(
    counted_rows: dict[str, records.Comment],
) -> None:
    author = counted_rows["2"].author.id
    counter_drift.plant(reads.get(counter_rows.site_counter_key("demo")), pending=2)
    counter_drift.plant(
        reads.get(counter_rows.participation_key(counter_drift.NAME, author)), approved=2
    )
    counter_drift.plant(reads.get(counter_rows.standing_key("demo", author)), approved=-2)
    here = counting.participation_scope("demo/page", author)
    assert counter_drift.recount_all() == [
        Difference(here, "approved", 3, 1),
        Difference(SITE, "pending", 2, 0),
        Difference(counting.author_scope("demo", author), "approved", 0, 2),
    ]
    assert counter_drift.recount_all() == []
    counter_oracle.assert_all_counted()


STATISTICS = [
    counting.category_scope("demo", "news"),
    counting.category_scope("demo", "news", "g:2"),
    counting.day_scope("demo", DAY),
    counting.day_scope("demo", DAY, "sport"),
    counting.day_scope("demo", DAY, "", "g:2"),
    counting.day_scope("demo", DAY, "sport", "g:2"),
]


@pytest.mark.parametrize("scope", STATISTICS)
@pytest.mark.parametrize("more", [1, -1])
def test_drifted_statistics_are_shown_repaired_and_not_found_again(
    counted_rows: dict[str, records.Comment], scope: counting.Scope, more: int
) -> None:
    row = reads.get(counter_rows.scope_key(scope))
    had = counter_rows.numbers_of(row)
    counter_drift.plant(row, approved=more, **({} if scope.author else {"participants": 3 * more}))
    now = counter_rows.numbers_of(row)
    found = [
        Difference(scope, name, now.get(name, 0), had[name])
        for name in ("approved", *(() if scope.author else ("participants",)))
    ]
    assert counter_drift.recount_all(fixes=False) == found
    assert counter_drift.recount_all() == found
    assert counter_drift.recount_all() == []
    counter_oracle.assert_all_counted()


@pytest.mark.parametrize("scope", STATISTICS)
def test_missing_rows_of_statistics_are_restored(
    counted_rows: dict[str, records.Comment], scope: counting.Scope
) -> None:
    numbers = counter_rows.numbers_of(reads.get(counter_rows.scope_key(scope)))
    counter_drift.delete(counter_rows.scope_key(scope))
    assert counter_drift.recount_all() == [
        Difference(scope, name, 0, numbers[name]) for name in sorted(numbers)
    ]
    assert counter_drift.recount_all() == []
    counter_oracle.assert_all_counted()


@pytest.mark.parametrize("day", ["", "2020-02-20"])
@pytest.mark.parametrize("category", ["news", "nothing"])
def test_rows_of_statistics_without_comments_are_deleted(
    counted_rows: dict[str, records.Comment], category: str, day: str
) -> None:
    place = counting.category_scope("demo", category)._replace(kind="day" if day else "category")
    place = place._replace(day=day)
    scope = place._replace(author="g:nobody/else")
    transactions.transaction(
        lambda: transactions.apply(
            ownership.Writes("counters", put=(counter_rows.statistics(scope, {"approved": 2}),))
        )
    )
    assert counter_drift.recount_all() == [Difference(scope, "approved", 2, 0)]
    assert counter_drift.recount_all() == []
    counter_oracle.assert_all_counted()


def test_missing_rows_are_restored_and_rows_of_unknown_authors_deleted(
    counted_rows: dict[str, records.Comment],
) -> None:
    counter_drift.delete(
        counter_rows.participation_key(counter_drift.NAME, counted_rows["2"].author.id)
    )
    counter_drift.delete(counter_rows.standing_key("demo", counted_rows["2"].author.id))
    counter_drift.delete(counter_rows.thread_counter_key(records.ThreadName("demo", "other"), 0))
    key = counter_rows.participation_key(counter_drift.NAME, "g:nobody")
    transactions.transaction(
        lambda: transactions.apply(
            ownership.Writes(
                "counters",
                put=(counter_rows.participation(key, "demo", "g:nobody", {"approved": 1}),),
            )
        )
    )
    assert len(counter_drift.recount_all()) == 3 + 1 + 1 + 1
    assert counter_drift.recount_all() == []
    counter_oracle.assert_all_counted()


@pytest.mark.parametrize("lost", range(4))
def test_a_missing_shard_is_recounted(
    counted_rows: dict[str, records.Comment], site: records.Site, lost: int
) -> None:
    sharding.spread(counter_drift.NAME, 4)
    for n in range(4):
        row = reads.get(
            counter_rows.thread_counter_key(counter_drift.NAME, n)
        ) or counter_rows.thread_counter(counter_drift.NAME, n)
        counter_drift.plant(row, approved=1)
    counter_drift.plant(counter_drift.thread_row(), approved=-4)
    counter_oracle.assert_counted()
    counter_drift.delete(counter_rows.thread_counter_key(counter_drift.NAME, lost))
    assert {each.scope for each in counter_drift.recount_all()} == {HERE}
    assert counter_drift.recount_all() == []
    sample_threads.post(site, "more", counted_rows["2"].id)
    counter_drift.deliver()
    sharding.gather(counter_drift.NAME)
    counter_oracle.assert_all_counted()


def test_threads_stored_before_there_were_counters_get_them(
    counted_rows: dict[str, records.Comment], site: records.Site
) -> None:
    for kind in ("Counter", "Participation", "Standing", "Category", "Day", "Month", "Appearance"):
        for message in list(reads.fetch(reads.Query(kind))):
            path = [part for step in message.key.path for part in (step.kind, step.name)]
            counter_drift.delete(schema.RowKey(*path))
    sample_threads.post(
        site, "meanwhile", counted_rows["2"].id
    )  # Counted although the earlier counters are missing
    counter_drift.recount_all()
    assert counter_drift.recount_all() == []
    counter_drift.deliver()
    assert counter_drift.recount_all() == []
    counter_oracle.assert_all_counted()


def test_undelivered_events_are_included_in_a_recount(
    counted_rows: dict[str, records.Comment], site: records.Site
) -> None:
    sample_threads.post(site, "late")
    own_comment.retract(
        counted_rows["2"].id,
        author_id=counted_rows["2"].author.id,
        revision=None,
        now=sample_threads.START,
    )
    counter_drift.plant(reads.get(counter_rows.site_counter_key("demo")), approved=1)
    assert counter_drift.recount_all() == [Difference(SITE, "approved", 16, 15)]
    assert counter_drift.recount_all() == []
    counter_drift.deliver()
    assert counter_drift.recount_all() == []
    counter_oracle.assert_all_counted()


def test_a_lost_event_is_found_as_drift(
    counted_rows: dict[str, records.Comment], site: records.Site
) -> None:
    row = sample_threads.post(site, "lost")
    key = event_rows.event_key(f"{row.id}.1")
    transactions.transaction(lambda: transactions.apply(ownership.Writes("outbox", delete=(key,))))
    assert counter_drift.recount_all() == [
        *_one_more(SITE, 15, 8),
        *_one_more(counting.category_scope("demo", "news"), 15, 8),
        *_one_more(counting.category_scope("demo", "sport"), 7, 7),
        *_one_more(counting.day_scope("demo", DAY), 15, 8),
        *_one_more(counting.day_scope("demo", DAY, "news"), 15, 8),
        *_one_more(counting.day_scope("demo", DAY, "sport"), 7, 7),
        Difference(MONTH, f"a02{row.author.id}", 0, 1),
        Difference(MONTH, "h0203", 7, 8),
        Difference(MONTH, "t02/page", 7, 8),
        *(Difference(each, "approved", 0, 1) for each in _places_of(row.author.id)),
    ]
    assert counter_drift.recount_all() == []
    counter_oracle.assert_all_counted()


def test_an_interrupted_recount_continues_where_it_stopped(
    counted_rows: dict[str, records.Comment], site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample_threads.post(site, "next", thread="other/2")  # Key starts with the stored position
    monkeypatch.setattr(recount, "NOTE_EVERY", 1)
    seen: list[str] = []
    real = recount.thread

    def thread(name: records.ThreadName, **options: Any) -> int:
        if len(seen) == 1:
            seen.append("interrupted")
            raise KeyboardInterrupt
        seen.append(name.id)
        return real(name, **options)

    monkeypatch.setattr(recount, "thread", thread)
    with pytest.raises(KeyboardInterrupt):
        counter_drift.recount_all()
    counter_drift.recount_all()
    assert seen == ["other", "interrupted", "other/2", "page"]
    counter_drift.recount_all()
    assert seen[4:] == ["other", "other/2", "page"]  # A complete recount starts from the beginning


def test_the_repair_of_many_authors_uses_transactions_of_bounded_size(
    store: connection.Store, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter_repair, "AT_ONCE", 3)
    sample_threads.grow(site, {f"{n}": {} for n in range(10)})
    counter_drift.deliver()
    for n in range(10):
        counter_drift.plant(
            reads.get(counter_rows.participation_key(counter_drift.NAME, f"g:{n}")), approved=-1
        )
        counter_drift.plant(
            reads.get(counter_rows.standing_key("demo", f"g:{n}")), approved=1, spam=1
        )
    assert len(counter_drift.recount_all()) == 10 + 20
    assert counter_drift.recount_all() == []
    counter_oracle.assert_all_counted()

"""Make counters drift, for tests of the recount."""

from datetime import timedelta
from typing import Any

from comments.domain import records
from comments.domain.counters import counting
from comments.events import dispatcher
from comments.posting import own_comment
from comments.store import ownership, reads, transactions
from comments.store.models import counter_rows, vote_rows
from comments.tree.counters.declared import declared_counts
from comments.upkeep import wiring
from comments.upkeep.integrity import recount
from comments.upkeep.integrity.recount import Difference
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

NAME = records.ThreadName("demo", "page")
NOW = sample_threads.START + timedelta(days=1)


def grown(site: records.Site) -> dict[str, records.Comment]:
    """Fill a site with two threads in two categories, and deliver all events."""
    site = sample_threads.filing(site, "news", "sport")
    grown = sample_threads.grow(site, sample_threads.TREE, categories=("sport", "news"))
    sample_threads.grow(site, sample_threads.TREE, thread="other", categories=("news",))
    own_comment.retract(
        grown["1.1"].id, author_id=grown["1.1"].author.id, revision=None, now=sample_threads.START
    )
    deliver()
    counter_oracle.assert_all_counted()
    return grown


def deliver() -> None:
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)


def recount_all(*, fixes: bool = True) -> list[Difference]:
    found: list[Difference] = []
    assert recount.site("demo", tell=found.append, fixes=fixes) == len(found)
    return found


def plant(row: Any, **numbers: int) -> None:
    """Add to a counter row's numbers directly, without an event."""
    row.numbers = counter_rows.encode(counting.sums(counter_rows.numbers_of(row), numbers))
    transactions.transaction(lambda: transactions.apply(ownership.Writes("counters", put=(row,))))


def delete(key: Any) -> None:
    transactions.transaction(
        lambda: transactions.apply(ownership.Writes("counters", delete=(key,)))
    )


def thread_row() -> Any:
    return reads.get(counter_rows.thread_counter_key(NAME, 0))


def lose_vote(comment_id: str, voter: str) -> None:
    gone = ownership.Writes("votes", delete=(vote_rows.vote_key(comment_id, f"g:{voter}"),))
    transactions.transaction(lambda: transactions.apply(gone))


def add_declared(site: str, name: str, more: int) -> None:
    """Add to a number of a declared counter directly, without an event."""
    transactions.transaction(
        lambda: transactions.apply(declared_counts.addition_writes({(site, name): more}))
    )

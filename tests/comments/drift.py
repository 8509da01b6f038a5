"""Counters that drift, as tests of the recount make them: a site, and what goes wrong in it."""

from datetime import timedelta
from typing import Any

from comments import (
    counters,
    counts,
    datastore,
    delivery,
    models,
    posting,
    records,
    recount,
)
from comments import handlers as wiring
from comments.recount import Difference
from tests import recounts, trees

NAME = records.ThreadName("demo", "page")
NOW = trees.START + timedelta(days=1)


def grown(site: records.Site) -> dict[str, records.Comment]:
    """A site with two threads in two categories, everything delivered."""
    site = trees.filing(site, "news", "sport")
    grown = trees.grow(site, trees.TREE, categories=("sport", "news"))
    trees.grow(site, trees.TREE, thread="other", categories=("news",))
    posting.retract(
        grown["1.1"].id, author_id=grown["1.1"].author.id, revision=None, now=trees.START
    )
    deliver()
    recounts.check_all()
    return grown


def deliver() -> None:
    delivery.deliver(recounts.events(), now=NOW, handlers=wiring.HANDLERS)


def recount_all(*, fixes: bool = True) -> list[Difference]:
    found: list[Difference] = []
    assert recount.site("demo", tell=found.append, fixes=fixes) == len(found)
    return found


def plant(row: Any, **numbers: int) -> None:
    """Add to a row of counters around everybody."""
    row.numbers = counts.encoded(counters.added(counts.numbers_of(row), numbers))
    datastore.transaction(lambda: datastore.apply(datastore.Writes("tallies", put=(row,))))


def delete(key: Any) -> None:
    datastore.transaction(lambda: datastore.apply(datastore.Writes("tallies", delete=(key,))))


def thread_row() -> Any:
    return datastore.get(models.thread_counter_key(NAME, 0))


def lose_vote(comment_id: str, voter: str) -> None:
    gone = datastore.Writes("votes", delete=(models.vote_key(comment_id, f"g:{voter}"),))
    datastore.transaction(lambda: datastore.apply(gone))

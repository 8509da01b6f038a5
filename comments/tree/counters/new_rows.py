"""Rows of counters as they are made: one of each scope, and the key of each.

Owns how numbers become a Counter, Participation, Standing, Category, Day or Appearance, whoever
counted them: in the change's transaction, from events, or anew. Reads nothing and writes nothing.
"""

from collections.abc import Mapping

from google.cloud import ndb

from comments.domain import counting, records
from comments.store.models import comment_rows, counter_rows
from comments.tree.counters import totals

OWNER = "counters"


def thread_counter(name: records.ThreadName, shard: int) -> counter_rows.Counter:
    """A shard of a thread that has no numbers yet."""
    key = counter_rows.thread_counter_key(name, shard)
    scope = f"thread/{comment_rows.thread_key_name(name)}"
    return counter_rows.Counter(key=key, scope=scope, site=name.site)


def participation(
    key: ndb.Key, site: str, author: str, numbers: Mapping[str, int]
) -> counter_rows.Participation:
    """The row of an author in a thread."""
    row = counter_rows.Participation(key=key, author=comment_rows.author_name(site, author))
    row.numbers = totals.encoded(numbers)
    return row


def with_numbers(row: counter_rows.Counter, numbers: Mapping[str, int]) -> counter_rows.Counter:
    """The row with other numbers."""
    row.numbers = totals.encoded(numbers)
    return row


def names(sums: Mapping[counting.Key, int]) -> totals.Numbers:
    """What is added to one scope, by the name of the number alone."""
    return {key.name: number for key, number in sums.items()}


def scope_key(scope: counting.Scope) -> ndb.Key:
    """The key of the row of a scope that is counted from events."""
    if scope.kind == "site":
        return counter_rows.site_counter_key(scope.place)
    if scope.kind == "author":
        return counter_rows.standing_key(scope.place, scope.author)
    return counter_rows.statistics_key(scope)


def author_row(scope: counting.Scope, numbers: totals.Numbers, comment: str) -> ndb.Model:
    """The row of an author on a website, in a category or on a day."""
    if scope.kind == "author":
        return standing(scope.place, scope.author, numbers, comment)
    return statistics(scope, numbers)


def statistics(scope: counting.Scope, numbers: totals.Numbers) -> ndb.Model:
    """The row of a category, of a day, or of an author there."""
    key, text = counter_rows.statistics_key(scope), totals.encoded(numbers)
    if scope.author:
        author = comment_rows.author_name(scope.place, scope.author)
        return counter_rows.Appearance(key=key, author=author, day=scope.day, numbers=text)
    if scope.day:
        return counter_rows.Day(key=key, entry=counter_rows.day_entry(scope), numbers=text)
    return counter_rows.Category(key=key, numbers=text)


def site_counter(site: str) -> counter_rows.Counter:
    """The Counter of a website that has no numbers yet."""
    return counter_rows.Counter(key=counter_rows.site_counter_key(site), scope=f"site/{site}")


def standing(
    site: str, author: str, numbers: Mapping[str, int], comment: str
) -> counter_rows.Standing:
    """The row of an author on a website, and a comment of his."""
    return counter_rows.Standing(
        key=counter_rows.standing_key(site, author),
        site=site,
        score=numbers.get("score", 0),
        takes_part=numbers.get(counting.APPROVED, 0) > 0,
        alias=counter_rows.standing_alias(site, author),
        comment=comment,
        numbers=totals.encoded(numbers),
    )

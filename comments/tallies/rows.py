"""Rows of counters as they are made: one of each scope, and the key of each.

Owns how numbers become a Counter, Participation, Standing, Category, Day or Appearance, whoever
counted them: in the change's transaction, from events, or anew. Reads nothing and writes nothing.
"""

from collections.abc import Mapping

from google.cloud import ndb

from comments import counters, counts, models, records

OWNER = "tallies"


def thread_counter(name: records.ThreadName, shard: int) -> models.Counter:
    """A shard of a thread that has no numbers yet."""
    key = models.thread_counter_key(name, shard)
    scope = f"thread/{models.thread_key_name(name)}"
    return models.Counter(key=key, scope=scope, site=name.site)


def participation(
    key: ndb.Key, site: str, author: str, numbers: Mapping[str, int]
) -> models.Participation:
    """The row of an author in a thread."""
    row = models.Participation(key=key, author=models.author_name(site, author))
    row.numbers = counts.encoded(numbers)
    return row


def with_numbers(row: models.Counter, numbers: Mapping[str, int]) -> models.Counter:
    """The row with other numbers."""
    row.numbers = counts.encoded(numbers)
    return row


def names(sums: Mapping[counters.Key, int]) -> counts.Numbers:
    """What is added to one scope, by the name of the number alone."""
    return {key.name: number for key, number in sums.items()}


def scope_key(scope: counters.Scope) -> ndb.Key:
    """The key of the row of a scope that is counted from events."""
    if scope.kind == "site":
        return models.site_counter_key(scope.place)
    if scope.kind == "author":
        return models.standing_key(scope.place, scope.author)
    return models.statistics_key(scope)


def author_row(scope: counters.Scope, numbers: counts.Numbers, comment: str) -> ndb.Model:
    """The row of an author on a website, in a category or on a day."""
    if scope.kind == "author":
        return standing(scope.place, scope.author, numbers, comment)
    return statistics(scope, numbers)


def statistics(scope: counters.Scope, numbers: counts.Numbers) -> ndb.Model:
    """The row of a category, of a day, or of an author there."""
    key, text = models.statistics_key(scope), counts.encoded(numbers)
    if scope.author:
        author = models.author_name(scope.place, scope.author)
        return models.Appearance(key=key, author=author, day=scope.day, numbers=text)
    if scope.day:
        return models.Day(key=key, entry=models.day_entry(scope), numbers=text)
    return models.Category(key=key, numbers=text)


def site_counter(site: str) -> models.Counter:
    """The Counter of a website that has no numbers yet."""
    return models.Counter(key=models.site_counter_key(site), scope=f"site/{site}")


def standing(site: str, author: str, numbers: Mapping[str, int], comment: str) -> models.Standing:
    """The row of an author on a website, and a comment of his."""
    return models.Standing(
        key=models.standing_key(site, author),
        site=site,
        score=numbers.get("score", 0),
        takes_part=numbers.get(counters.APPROVED, 0) > 0,
        alias=models.standing_alias(site, author),
        comment=comment,
        numbers=counts.encoded(numbers),
    )

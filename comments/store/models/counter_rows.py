"""Counters, and the rows of authors and days that are counted in: kinds, keys, rows, numbers.

`numbers` of a row is a JSON object, names to numbers, whoever counted them: the transaction of a
change, an event, or a recount.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC

import msgspec
from google.cloud import ndb

from comments.domain import counting, records
from comments.store.models import schema
from comments.store.models.comment_rows import thread_key, thread_key_name

OWNER = "counters"
Numbers = dict[str, int]


class Counter(schema.Kind):
    """One shard of the numbers of a scope. Written by `tallies` only.

    `numbers` is a JSON object, names to numbers. `shards` tells readers how many there are;
    it stands in the first, as `mended` does, how often a recount added to it. `site` is whose
    thread it counts, empty for the site's own numbers. `lately` is how many posts it took since
    `began`, where there is a limit.
    """

    scope = schema.StringProperty(required=True)
    site = schema.StringProperty(default="")
    shards = schema.IntegerProperty(default=1)
    mended = schema.IntegerProperty(indexed=False, default=0)
    lately = schema.IntegerProperty(indexed=False, default=0)
    began = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    numbers = schema.TextProperty(default="")


class Usage(schema.Kind):
    """What a website used on a day. Written by `usage` only, and drawn there.

    `mark` is that of the last one who added to it.
    """

    reads = schema.IntegerProperty(indexed=False, default=0)
    writes = schema.IntegerProperty(indexed=False, default=0)
    mails = schema.IntegerProperty(indexed=False, default=0)
    posts = schema.IntegerProperty(indexed=False, default=0)
    previews = schema.IntegerProperty(indexed=False, default=0)
    mark = schema.TextProperty(default="")


class Participation(schema.Kind):
    """An author in a thread. Written by `tallies` only. `author` is `author_name`."""

    author = schema.StringProperty(required=True)
    numbers = schema.TextProperty(default="")


class Standing(schema.Kind):
    """An author on a website. Written by `tallies` only. `score` is that of `numbers`.

    `takes_part` while he has an approved comment there. `alias` orders those of one score, as the
    id would, which no cursor may show. `comment` is one of his, to tell his name by.
    """

    site = schema.StringProperty(required=True)
    score = schema.IntegerProperty(default=0)
    takes_part = schema.BooleanProperty(default=False)
    alias = schema.StringProperty(default="")
    comment = schema.TextProperty(default="")
    numbers = schema.TextProperty(default="")


class Category(schema.Kind):
    """The numbers of a category of a website. Written by `tallies` only."""

    numbers = schema.TextProperty(default="")


class Day(schema.Kind):
    """The numbers of a day on a website or in a category of it. Written by `tallies` only.

    `entry` is "{site id}/{date}/{category, or nothing}": the order of a report over categories.
    """

    entry = schema.StringProperty(required=True)
    numbers = schema.TextProperty(default="")


class Appearance(schema.Kind):
    """An author with approved comments in a category or on a day. Written by `tallies` only.

    `author` is `author_name`; `day` a date, or empty for ever.
    """

    author = schema.StringProperty(required=True)
    day = schema.StringProperty(default="")
    numbers = schema.TextProperty(default="")


def author_name(site: str, author: str) -> str:
    """An author of a website as one text. Site ids hold no "/"."""
    return f"{site}/{author}"


def usage_key(site: str, day: str) -> ndb.Key:
    """The key of what a website used on a day."""
    return ndb.Key(Usage, f"{site}/{day}")


def site_counter_key(site: str) -> ndb.Key:
    """The key of a website's counters."""
    return ndb.Key(Counter, f"site/{site}#0")


def standing_key(site: str, author: str) -> ndb.Key:
    """The key of the row of an author on a website."""
    return ndb.Key(Standing, author_name(site, author))


def standing_alias(site: str, author: str) -> str:
    """What stands for an author of a website where his id must not be seen."""
    return hashlib.sha256(author_name(site, author).encode()).hexdigest()[:32]


def statistics_key(scope: counting.Scope) -> ndb.Key:
    """The key of the row of a category, of a day, or of an author there."""
    if scope.author:
        parts = (scope.place, scope.category, scope.day, scope.author)
        return ndb.Key(Appearance, "/".join(parts))
    if scope.day:
        return ndb.Key(Day, f"{scope.place}/{scope.category}/{scope.day}")
    return ndb.Key(Category, f"{scope.place}/{scope.category}")


def day_entry(scope: counting.Scope) -> str:
    """A day's place in a report over all categories of a website."""
    return f"{scope.place}/{scope.day}/{scope.category}"


def statistics_scope(kind: str, name: str) -> counting.Scope:
    """What a row of those kinds counts, by its key's name. Site ids and categories hold no "/"."""
    if kind == "Category":
        return counting.category_scope(*name.split("/", 1))
    if kind == "Day":
        site, category, day = name.split("/", 2)
        return counting.day_scope(site, day, category)
    site, category, day, author = name.split("/", 3)
    if not day:
        return counting.category_scope(site, category, author)
    return counting.day_scope(site, day, category, author)


def thread_counter_name(thread: str, shard: int) -> str:
    """The key name of a shard of a thread's counters, by the thread's; without NDB, for many."""
    return f"thread/{thread}#{shard}"


def thread_counter_key(name: records.ThreadName, shard: int) -> ndb.Key:
    """The key of a shard of a thread's counters."""
    return thread_counter_key_of(thread_key_name(name), shard)


def thread_counter_key_of(thread: str, shard: int) -> ndb.Key:
    """The same, by the thread's key name."""
    return ndb.Key(Counter, thread_counter_name(thread, shard))


def participation_key(name: records.ThreadName, author: str) -> ndb.Key:
    """The key of the row of an author in a thread."""
    return ndb.Key(Participation, author, parent=thread_key(name))


_Row = Counter | Participation | Standing | Category | Day | Appearance


def numbers_of(row: _Row | None) -> Numbers:
    """The numbers of a row, or none."""
    return {} if row is None else decoded(row.numbers)


def encoded(numbers: Mapping[str, int]) -> str:
    """Numbers as they are stored."""
    return msgspec.json.encode(numbers, order="sorted").decode()


def decoded(text: str) -> Numbers:
    """Numbers as they are counted."""
    return msgspec.json.decode(text, type=Numbers) if text else {}


def thread_counter(name: records.ThreadName, shard: int) -> Counter:
    """A shard of a thread that has no numbers yet."""
    key = thread_counter_key(name, shard)
    scope = f"thread/{thread_key_name(name)}"
    return Counter(key=key, scope=scope, site=name.site)


def participation(
    key: ndb.Key, site: str, author: str, numbers: Mapping[str, int]
) -> Participation:
    """The row of an author in a thread."""
    row = Participation(key=key, author=author_name(site, author))
    row.numbers = encoded(numbers)
    return row


def with_numbers(row: Counter, numbers: Mapping[str, int]) -> Counter:
    """The row with other numbers."""
    row.numbers = encoded(numbers)
    return row


def names(sums: Mapping[counting.Key, int]) -> Numbers:
    """What is added to one scope, by the name of the number alone."""
    return {key.name: number for key, number in sums.items()}


def scope_key(scope: counting.Scope) -> ndb.Key:
    """The key of the row of a scope that is counted from events."""
    if scope.kind == "site":
        return site_counter_key(scope.place)
    if scope.kind == "author":
        return standing_key(scope.place, scope.author)
    return statistics_key(scope)


def author_row(scope: counting.Scope, numbers: Numbers, comment: str) -> ndb.Model:
    """The row of an author on a website, in a category or on a day."""
    if scope.kind == "author":
        return standing(scope.place, scope.author, numbers, comment)
    return statistics(scope, numbers)


def statistics(scope: counting.Scope, numbers: Numbers) -> ndb.Model:
    """The row of a category, of a day, or of an author there."""
    key, text = statistics_key(scope), encoded(numbers)
    if scope.author:
        author = author_name(scope.place, scope.author)
        return Appearance(key=key, author=author, day=scope.day, numbers=text)
    if scope.day:
        return Day(key=key, entry=day_entry(scope), numbers=text)
    return Category(key=key, numbers=text)


def site_counter(site: str) -> Counter:
    """The Counter of a website that has no numbers yet."""
    return Counter(key=site_counter_key(site), scope=f"site/{site}")


def standing(site: str, author: str, numbers: Mapping[str, int], comment: str) -> Standing:
    """The row of an author on a website, and a comment of his."""
    return Standing(
        key=standing_key(site, author),
        site=site,
        score=numbers.get("score", 0),
        takes_part=numbers.get(counting.APPROVED, 0) > 0,
        alias=standing_alias(site, author),
        comment=comment,
        numbers=encoded(numbers),
    )

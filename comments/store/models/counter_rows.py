"""Define the kinds and keys for counters of threads, sites, authors, categories and periods.

A row's `numbers` property is a JSON object that maps names to numbers. A number is updated by the
transaction of a change, by the delivery of an event, or by a recount.

Key names separate their parts with "/", so the "/" in a nested category is stored as U+001F. All
other characters of categories sort after U+001F. A Category row is therefore directly followed by
the rows of its subcategories, and a subtree is one range of keys.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from comments.domain import decoders, records
from comments.domain.counters import counting
from comments.store.models import schema
from comments.store.models.comment_rows import thread_key, thread_key_name

OWNER = "counters"
Numbers = dict[str, int]
MOST_BYTES = 1_000_000  # Maximum size of a row's numbers; an entity has at most 1 MiB.
_NESTED = "\x1f"  # Stored in place of a category's "/", so it must never change.
_LAST = "\U0010ffff"


class CounterRow(schema.StoredRow):
    """One shard of a scope's numbers. Only `counters` writes this kind.

    The first shard also has `shards`, the number of shards that readers must add up, and `mended`,
    the number of recounts that corrected the numbers. `site` is the counted thread's site, or ""
    for the numbers of a site. `lately` is the number of posts counted in this shard since `began`,
    if the number of posts is limited. Only rows of sites have `listings`, which contains the
    comment counts of many threads (`thread_counts`), and `declared`, which contains the site's
    declared counters as JSON (`declarations`).
    """

    scope = schema.string(required=True)
    site = schema.string(default="")
    shards = schema.integer(default=1)
    mended = schema.integer(indexed=False, default=0)
    lately = schema.integer(indexed=False, default=0)
    began = schema.time(indexed=False)
    numbers = schema.text(default="")
    listings = schema.text(default="")
    declared = schema.text(default="")


class UsageRow(schema.StoredRow):
    """A website's usage on one day. Only `usage` writes this kind.

    `mark` identifies the last flush that added to the row.
    """

    reads = schema.integer(indexed=False, default=0)
    writes = schema.integer(indexed=False, default=0)
    mails = schema.integer(indexed=False, default=0)
    posts = schema.integer(indexed=False, default=0)
    previews = schema.integer(indexed=False, default=0)
    mark = schema.text(default="")


class ParticipationRow(schema.StoredRow):
    """An author in a thread. Only `counters` writes this kind. `author` is an `author_name`."""

    author = schema.string(required=True)
    numbers = schema.text(default="")


class StandingRow(schema.StoredRow):
    """An author on a website. Only `counters` writes this kind. `score` is also in `numbers`.

    `takes_part` is true while the author has an approved comment on the website. Authors with equal
    scores are ordered by `alias`, not by author id, because a cursor must not reveal the id.
    `comment` is one of the author's comments, from which the author's name is read.
    """

    site = schema.string(required=True)
    score = schema.integer(default=0)
    takes_part = schema.boolean(default=False)
    alias = schema.string(default="")
    comment = schema.text(default="")
    numbers = schema.text(default="")


class CategoryRow(schema.StoredRow):
    """The numbers of one of a website's categories. Only `counters` writes this kind."""

    numbers = schema.text(default="")


class DayRow(schema.StoredRow):
    """The numbers of a day on a website or in a category. Only `counters` writes this kind.

    `entry` is "{site id}/{date}/{category, or empty}", with the category as in a key name. Sorting
    by `entry` gives the order of a report over categories.
    """

    entry = schema.string(required=True)
    numbers = schema.text(default="")


class MonthRow(schema.StoredRow):
    """The numbers of a group of a website's pages in a month. Only `counters` writes this kind.

    The names of the numbers are those of `counting.month_scope`.
    """

    numbers = schema.text(default="")


class AppearanceRow(schema.StoredRow):
    """An author with approved comments in a category or on a day, written only by `counters`.

    `author` is an `author_name`; `day` is a date, or empty for all time.
    """

    author = schema.string(required=True)
    day = schema.string(default="")
    numbers = schema.text(default="")


def author_name(site: str, author: str) -> str:
    """Return a text that identifies an author on a website. Site ids contain no "/"."""
    return f"{site}/{author}"


def usage_key(site: str, day: str) -> schema.RowKey:
    """Return the key of a website's usage on one day."""
    return schema.RowKey(UsageRow, f"{site}/{day}")


def site_counter_key(site: str) -> schema.RowKey:
    """Return the key of a website's counter."""
    return schema.RowKey(CounterRow, f"site/{site}#0")


def listings_name(site: str, group: int) -> str:
    """Return the key name of a row with the comment counts of some of a website's threads."""
    return f"threads/{site}#{group}" if group else f"site/{site}#0"


def listings_key(site: str, group: int) -> schema.RowKey:
    """Return the key of a row with the comment counts of some of a website's threads."""
    return schema.RowKey(CounterRow, listings_name(site, group))


def standing_key(site: str, author: str) -> schema.RowKey:
    """Return the key of an author's row on a website."""
    return schema.RowKey(StandingRow, author_name(site, author))


def standing_alias(site: str, author: str) -> str:
    """Return an author's alias on a website, for use where the author's id must stay secret."""
    return hashlib.sha256(author_name(site, author).encode()).hexdigest()[:32]


def category_part(category: str) -> str:
    """Return a category as part of a key name."""
    return category.replace("/", _NESTED)


def category_of(part: str) -> str:
    """Return the category in a part of a key name."""
    return part.replace(_NESTED, "/")


def subtree_names(site: str, category: str) -> tuple[str, str]:
    """Return the first and the last possible Category key name of a category's subtree."""
    first = f"{site}/{category_part(category)}"
    return first, f"{first}{_NESTED}{_LAST}"


def statistics_key(scope: counting.Scope) -> schema.RowKey:
    """Return the key of the row for a category, a day, a month, or an author in one of the first.

    A month's row has the numbers of a group of pages.
    """
    if scope.kind == counting.MONTH:
        return month_key(scope.place, scope.day, scope.category)
    category = category_part(scope.category)
    if scope.author:
        parts = (scope.place, category, scope.day, scope.author)
        return schema.RowKey(AppearanceRow, "/".join(parts))
    if scope.day:
        return schema.RowKey(DayRow, f"{scope.place}/{category}/{scope.day}")
    return schema.RowKey(CategoryRow, f"{scope.place}/{category}")


def month_key(site: str, month: str, group: str) -> schema.RowKey:
    """Return the key of the row for a group of pages in a month, such as "2026-01"."""
    return schema.RowKey(MonthRow, f"{site}/{month}/{group}")


def appearances_prefix(scope: counting.Scope) -> str:
    """Return the start of the key names of a scope's Appearance rows; an author's id follows it."""
    return f"{scope.place}/{category_part(scope.category)}/{scope.day}/"


def day_entry(scope: counting.Scope) -> str:
    """Return the sort key of a day's row in a report over all categories of a website."""
    return f"{scope.place}/{scope.day}/{category_part(scope.category)}"


def statistics_scope(kind: str, name: str) -> counting.Scope:
    """Return the scope of a Category, Day, Month or Appearance row, given its key name.

    The key name is unambiguous, because site ids contain no "/".
    """
    site, part, *rest = name.split("/", 3)
    if kind == "Month":
        return counting.Scope(counting.MONTH, site, category=rest[0], day=part)
    category = category_of(part)
    if kind == "Category":
        return counting.category_scope(site, category)
    if kind == "Day":
        return counting.day_scope(site, rest[0], category)
    day, author = rest
    if not day:
        return counting.category_scope(site, category, author)
    return counting.day_scope(site, day, category, author)


def thread_counter_name(thread: str, shard: int) -> str:
    """Return the key name of a thread's counter shard, given the thread's key name."""
    return f"thread/{thread}#{shard}"


def thread_counter_key(name: records.ThreadName, shard: int) -> schema.RowKey:
    """Return the key of a thread's counter shard."""
    return thread_counter_key_of(thread_key_name(name), shard)


def thread_counter_key_of(thread: str, shard: int) -> schema.RowKey:
    """Return the key of a thread's counter shard, given the thread's key name."""
    return schema.RowKey(CounterRow, thread_counter_name(thread, shard))


def participation_key(name: records.ThreadName, author: str) -> schema.RowKey:
    """Return the key of an author's row in a thread."""
    return schema.RowKey(ParticipationRow, author, parent=thread_key(name))


_Row = CounterRow | ParticipationRow | StandingRow | CategoryRow | DayRow | MonthRow | AppearanceRow


def numbers_of(row: _Row | None) -> Numbers:
    """Return a row's numbers, which are empty if there is no row."""
    return {} if row is None else decode(row.numbers)


def encode(numbers: Mapping[str, int]) -> str:
    return msgspec.json.encode(numbers, order="sorted").decode()


def decode(text: str) -> Numbers:
    return decoders.json(Numbers).decode(text) if text else {}


def thread_counter(name: records.ThreadName, shard: int) -> CounterRow:
    """Make a counter shard without numbers for a thread."""
    key = thread_counter_key(name, shard)
    scope = f"thread/{thread_key_name(name)}"
    return CounterRow(key=key, scope=scope, site=name.site)


def participation(
    key: schema.RowKey, site: str, author: str, numbers: Mapping[str, int]
) -> ParticipationRow:
    row = ParticipationRow(key=key, author=author_name(site, author))
    row.numbers = encode(numbers)
    return row


def with_numbers(row: CounterRow, numbers: Mapping[str, int]) -> CounterRow:
    row.numbers = encode(numbers)
    return row


def names(sums: Mapping[counting.Key, int]) -> Numbers:
    """Convert one scope's sums, which are by counter key, to numbers by name."""
    return {key.name: number for key, number in sums.items()}


def scope_key(scope: counting.Scope) -> schema.RowKey:
    """Return the key of the row for a scope that is counted from events."""
    if scope.kind == "site":
        return site_counter_key(scope.place)
    if scope.kind == "author":
        return standing_key(scope.place, scope.author)
    return statistics_key(scope)


def author_row(scope: counting.Scope, numbers: Numbers, comment: str) -> schema.StoredRow:
    """Make the row for an author on a website, in a category or on a day."""
    if scope.kind == "author":
        return new_author_row(scope.place, scope.author, numbers, comment)
    return statistics(scope, numbers)


def fits(row: schema.StoredRow) -> bool:
    """Return whether a row of statistics can be stored.

    Only a group of pages in a month can become too large (`docs/counters.md` has the limit). Its
    numbers then stay as they are.
    """
    return not isinstance(row, MonthRow) or len(row.numbers.encode()) <= MOST_BYTES


def statistics(scope: counting.Scope, numbers: Numbers) -> schema.StoredRow:
    """Make the row for a category, a day, a month, or an author in a category or on a day."""
    key, text = statistics_key(scope), encode(numbers)
    if scope.kind == counting.MONTH:
        return MonthRow(key=key, numbers=text)
    if scope.author:
        author = author_name(scope.place, scope.author)
        return AppearanceRow(key=key, author=author, day=scope.day, numbers=text)
    if scope.day:
        return DayRow(key=key, entry=day_entry(scope), numbers=text)
    return CategoryRow(key=key, numbers=text)


def site_counter(site: str) -> CounterRow:
    """Make a website's Counter without numbers."""
    return CounterRow(key=site_counter_key(site), scope=f"site/{site}")


def listings_row(site: str, group: int) -> CounterRow:
    """Make a row for the comment counts of some of a website's threads."""
    if not group:
        return site_counter(site)
    return CounterRow(key=listings_key(site, group), scope=f"threads/{site}")


def new_author_row(site: str, author: str, numbers: Mapping[str, int], comment: str) -> StandingRow:
    """Make an author's row on a website. `comment` is one of the author's comments."""
    return StandingRow(
        key=standing_key(site, author),
        site=site,
        score=numbers.get("score", 0),
        takes_part=numbers.get(counting.APPROVED, 0) > 0,
        alias=standing_alias(site, author),
        comment=comment,
        numbers=encode(numbers),
    )

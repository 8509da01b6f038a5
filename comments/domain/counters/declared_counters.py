"""Declared counters: counters of comments that a site's owner declares (pure).

A declaration says which comments a counter counts, by which keys, and what it adds up:

    where   comparisons, all of which must hold, such as "status = approved" and "down >= 5"
    by      the keys, a subset of `CounterKey`: a number for each thread, category, day or author,
            and for each combination of them; without keys, one number for the site
    sum     what each counted comment adds (`VALUES`)

`FIELDS` is the only list of the fields that a condition can test, and says how each field is read
from the state of a comment. To extend the list, add a field to `FIELDS` and, if the field is new,
to `counting.CountedState`. Comparisons are typed values, so no text of an owner is ever evaluated.

A declaration becomes an entry of a registry of counters (`registry`), to which the usual formula
(`counting.increments`) is applied.

A counter's numbers depend only on its declaration, so a changed declaration gets a new generation
with numbers of its own.
"""

import dataclasses
import enum
import functools
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date

import msgspec

from comments import errors
from comments.domain import categories
from comments.domain.counters import counting
from comments.domain.counters.counting import CountedState
from comments.domain.ids import author_ids
from comments.domain.records import Status

MOST = 20  # Maximum number of counters of a site
MOST_CONDITIONS = 10
LONGEST_NAME = 40  # In characters
MOST_CATEGORIES = categories.MOST * categories.DEEPEST  # Most categories in which a comment counts
LARGEST = 1_000_000_000
SCOPE = "declared"

_NAME = re.compile(rf"[a-z0-9-]{{1,{LONGEST_NAME}}}")
_CONDITION = re.compile(r"\A\s*(\w+)\s*(<=|>=|!=|=|<|>)\s*(-?\w+)\s*", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,10}")
# The first character separates the parts of a name. The second replaces each "/" in a category. No
# part contains control characters. Because all other characters sort after these two, a category is
# directly followed by its subcategories, and a subtree is one range of names. Both characters are
# stored, so they must never change.
_BETWEEN = "\x1e"
_NESTED = "\x1f"


class CounterKey(enum.StrEnum):
    """Keys by which a counter can count, in the order of a name's parts. The names are stored."""

    CATEGORY = "category"
    DAY = "day"
    THREAD = "thread"
    AUTHOR = "author"


@dataclasses.dataclass(frozen=True, slots=True)
class ConditionField:
    """A field of a comment that conditions can test.

    `values` lists the values of a field that is not a number; such a field can only be compared for
    equality.
    """

    read: Callable[[CountedState], str | int]
    values: tuple[str, ...] = ()

    @property
    def comparisons(self) -> tuple[str, ...]:
        """Return the comparisons that the field accepts."""
        return ("=", "!=") if self.values else tuple(_COMPARISONS)


def _author_kind(state: CountedState) -> str:
    if state.author.startswith(author_ids.GUEST):
        return "guest"
    if state.author.startswith(author_ids.ACCOUNT):
        return "account"
    return "imported" if state.author else "none"


def _yes_or_no(*, is_so: bool) -> str:
    return "yes" if is_so else "no"


_YES_NO = ("yes", "no")
FIELDS: Mapping[str, ConditionField] = {
    "status": ConditionField(lambda state: state.status, tuple(Status)),
    "listed": ConditionField(lambda state: _yes_or_no(is_so=state.listed), _YES_NO),
    "reply": ConditionField(lambda state: _yes_or_no(is_so=state.reply), _YES_NO),
    "author": ConditionField(_author_kind, ("guest", "account", "imported", "none")),
    "up": ConditionField(lambda state: state.up),
    "down": ConditionField(lambda state: state.down),
    "votes": ConditionField(lambda state: state.up + state.down),
    "score": ConditionField(lambda state: state.up - state.down),
}
VALUES: Mapping[str, Callable[[CountedState], int]] = {
    "comments": lambda _: 1,
    "up": lambda state: state.up,
    "down": lambda state: state.down,
    "score": lambda state: state.up - state.down,
}
_COMPARISONS: Mapping[str, Callable[[object, object], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,  # type: ignore[dict-item]
    "<=": operator.le,  # type: ignore[dict-item]
    ">": operator.gt,  # type: ignore[dict-item]
    ">=": operator.ge,  # type: ignore[dict-item]
}


class Condition(msgspec.Struct, frozen=True, array_like=True):
    """A comparison of a field with a value, which is a number for fields that are numbers."""

    field: str
    comparison: str
    value: str | int

    def holds(self, state: CountedState) -> bool:
        """Return whether a comment meets the condition."""
        return _COMPARISONS[self.comparison](FIELDS[self.field].read(state), self.value)

    def __str__(self) -> str:
        return f"{self.field} {self.comparison} {self.value}"


class Declaration(msgspec.Struct, frozen=True):
    """What a counter counts. Use `declare` to make one from a user's input."""

    name: str
    where: tuple[Condition, ...] = ()
    by: tuple[CounterKey, ...] = ()
    sum: str = "comments"

    def __str__(self) -> str:
        where = " and ".join(map(str, self.where))
        keys = ", ".join(self.by)
        return f"{self.sum}{f' where {where}' if where else ''}{f' by {keys}' if keys else ''}"


class DeclaredCounter(msgspec.Struct, frozen=True):
    """A declaration with the generation of its numbers.

    Until the comments from before the declaration are counted, `is_complete` is false.
    """

    declaration: Declaration
    generation: int
    is_complete: bool = False


class CountPlace(msgspec.Struct, frozen=True):
    """The keys that identify a number. Keys that the counter does not count by are empty.

    `thread` is a thread's key name without its site.
    """

    category: str = ""
    day: str = ""
    thread: str = ""
    author: str = ""


def declare(
    name: str, where: Iterable[str] = (), by: Iterable[str] = (), value: str = "comments"
) -> Declaration:
    """Make a declaration from a user's input.

    Raises:
        errors.BadInput: the name, a condition, a key or the value is not valid. The error's field
            names the part: "name", "where", "by" or "sum".
    """
    if not _NAME.fullmatch(name):
        raise errors.BadInput("name", "bad-id", limit=LONGEST_NAME)
    conditions = tuple(dict.fromkeys(map(_condition, where)))
    if len(conditions) > MOST_CONDITIONS:
        raise errors.BadInput("where", "too-many-items", limit=MOST_CONDITIONS)
    keys = set(by)
    if not keys <= set(CounterKey):
        raise errors.BadInput("by", "unknown-value", allowed=", ".join(CounterKey))
    if value not in VALUES:
        raise errors.BadInput("sum", "unknown-value", allowed=", ".join(VALUES))
    return Declaration(name, conditions, tuple(key for key in CounterKey if key in keys), value)


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise errors.BadInput("where", "bad-condition", value=text)
    name, comparison, value = match.groups()
    field = FIELDS.get(name)
    if field is None:
        raise errors.BadInput(
            "where", "unknown-counter-field", value=name, allowed=", ".join(FIELDS)
        )
    if comparison not in field.comparisons:
        allowed = ", ".join(field.comparisons)
        raise errors.BadInput("where", "bad-comparison", value=text, allowed=allowed)
    if field.values:
        if value not in field.values:
            allowed = ", ".join(field.values)
            raise errors.BadInput("where", "bad-condition-value", value=text, allowed=allowed)
        return Condition(name, comparison, value)
    if not _NUMBER.fullmatch(value) or abs(int(value)) > LARGEST:
        raise errors.BadInput(
            "where", "bad-condition-number", value=text, minimum=-LARGEST, maximum=LARGEST
        )
    return Condition(name, comparison, int(value))


def scope(site: str) -> counting.Scope:
    """Return the scope of all declared counters of a website."""
    return counting.Scope(SCOPE, site)


def registry(counters: Iterable[DeclaredCounter]) -> counting.Registry[CountedState]:
    """Return the entries of declared counters in a registry of counters.

    The name of each number consists of the counter's generation and the number's place.
    """
    return tuple(functools.partial(_amounts, counter) for counter in counters)


def increments(
    counters: Sequence[DeclaredCounter], changes: Iterable[counting.CountedChange]
) -> dict[str, int]:
    """Return the nonzero amounts that changes of a website's comments add to declared counters."""
    entries = registry(counters)
    sums = counting.total(
        counting.increments(entries, change.old, change.new) for change in changes
    )
    return {key.name: amount for key, amount in sums.items()}


def _amounts(counter: DeclaredCounter, state: CountedState) -> counting.Amounts:
    declared = counter.declaration
    if not all(condition.holds(state) for condition in declared.where):
        return ()
    amount = VALUES[declared.sum](state)
    if not amount:
        return ()
    here = scope(state.site)
    # A key that the comment lacks has no values, so the product is empty.
    values = [_PLACES[key](state) if key in declared.by else ("",) for key in CounterKey]
    return tuple(
        (counting.Key(here, f"{counter.generation}/{_BETWEEN.join(parts)}"), amount)
        for parts in itertools.product(*values)
    )


def _only(text: str) -> tuple[str, ...]:
    return (text,) if text else ()


_PLACES: Mapping[CounterKey, Callable[[CountedState], tuple[str, ...]]] = {
    CounterKey.CATEGORY: lambda state: tuple(
        category.replace("/", _NESTED)
        for category in categories.with_ancestors(state.categories[: categories.MOST])
    ),
    CounterKey.DAY: lambda state: _only(state.day),
    CounterKey.THREAD: lambda state: _only(state.thread[len(state.site) :]),
    CounterKey.AUTHOR: lambda state: _only(state.author),
}


def generation_of(name: str) -> int:
    """Return the generation that the name of a number contains."""
    return int(name.partition("/")[0])


def place_of(name: str) -> CountPlace:
    """Return the place that the name of a number contains."""
    category, *others = name.partition("/")[2].split(_BETWEEN)
    return CountPlace(category.replace(_NESTED, "/"), *others)


def subtree(category: str) -> tuple[str, str]:
    """Return the bounds of a category and its subcategories, in the form used in names.

    The second bound is excluded.
    """
    first = category.replace("/", _NESTED)
    return f"{first}{_BETWEEN}", f"{first} "  # The next character after "\x1f" is a space.


def first_day(day: date) -> str:
    """Return the first place on a day, without a category, in the form used in names."""
    return f"{_BETWEEN}{day.isoformat()}"


def rows_per_comment(declaration: Declaration) -> int:
    """Return the maximum number of rows in which one state of a comment counts."""
    return MOST_CATEGORIES if CounterKey.CATEGORY in declaration.by else 1

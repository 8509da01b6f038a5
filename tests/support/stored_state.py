"""Read the stored state as plain rows and numbers that can be compared with a ledger.

This module reads properties by their stored names and sums shards itself, so the comparison uses
none of the product's counting code.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from datetime import UTC
from typing import Any

from comments.store import reads
from tests.comments import kinds
from tests.support.histories import ledger
from tests.support.histories.ledger import Numbers, Said


def rows(kind: str) -> Iterable[Any]:
    return reads.fetch(reads.Query(kind))


def kind_names() -> list[str]:
    """Return all kinds. Google's Firestore emulator cannot list those that it has."""
    return [kind.KIND for kind in kinds.stored()]


def name_of(message: Any, level: int = -1) -> str:
    """Return the name of an entity or of one of its ancestors."""
    name: str = message.key.path[level].name
    return name


def said() -> dict[str, Said]:
    """Return every comment by its id."""
    return {name_of(each): _said(each) for each in rows("Comment")}


def _said(message: Any) -> Said:
    values = message.properties
    numbers = ("level", "number", "revision", "up", "down")
    return Said(
        id=name_of(message),
        thread=values["thread"].string_value,
        author=values["author_id"].string_value,
        status=values["status"].string_value,
        reply_to=values["reply_to"].string_value or None,
        parent=values["parent"].string_value or None,
        body=values["body"].string_value,
        created=values["created"].timestamp_value.ToDatetime(UTC),
        children=values["child_count"].integer_value,
        listed=values["listed"].boolean_value,
        categories=tuple(each.string_value for each in values["categories"].array_value.values),
        stood=values["stood"].string_value,
        pinned=values["pinned"].boolean_value,
        **{name: values[name].integer_value for name in numbers},
    )


def audit() -> list[tuple[str, str, str, str]]:
    """Return the audited decisions about comments: comment, verb, previous status, new status."""
    return [
        (
            each.properties["subject"].string_value,
            each.properties["verb"].string_value,
            each.properties["before"].string_value,
            each.properties["after"].string_value,
        )
        for each in rows("AuditEntry")
        if ":" not in each.properties["subject"].string_value
    ]


def roots() -> dict[str, int]:
    """Return the number of roots that each thread has ever had."""
    return {name_of(each): each.properties["child_count"].integer_value for each in rows("Thread")}


def in_threads() -> dict[str, Numbers]:
    """Return the numbers of threads and their authors, adding up shards."""
    found = _shards("thread")
    for numbers in found.values():
        numbers.pop("followers", None)
    for each in rows("Participation"):
        found[f"thread {name_of(each, 0)}{ledger.BY}{name_of(each)}"] = _only(each)
    return ledger.without_zeros(found)


def later() -> dict[str, Numbers]:
    """Return the numbers of sites, categories, days and their authors."""
    found = _shards("site")
    for each in rows("Standing"):
        site, _, author = name_of(each).partition("/")
        numbers = found[f"site {site}{ledger.BY}{author}"] = _only(each)
        assert each.properties["score"].integer_value == numbers.get("score", 0)
        takes_part = each.properties["takes_part"].boolean_value
        assert takes_part == (numbers.get("approved", 0) > 0)
    for each in rows("Category"):
        found["category {} {}".format(*_parts(each))] = _only(each)
    for each in rows("Day"):
        site, category, day = _parts(each)
        found[f"day {site} {day} {category}"] = _only(each)
    for each in rows("Month"):
        site, month, _ = name_of(each).split("/")
        sums = found.setdefault(f"month {site} {month}", {})
        for name, number in _only(each).items():
            sums[name] = sums.get(name, 0) + number
    for each in rows("Appearance"):
        site, category, day, author = _parts(each)
        place = f"day {site} {day} {category}" if day else f"category {site} {category}"
        found[f"{place}{ledger.BY}{author}"] = _only(each)
    return ledger.without_zeros(found)


def _parts(each: Any) -> list[str]:
    """Return the parts of a counter's key name, with a category in its usual form."""
    site, category, *rest = name_of(each).split("/", 3)
    return [site, category.replace("\x1f", "/"), *rest]


def votes() -> dict[tuple[str, str], int]:
    """Return the votes on comments that are not retracted, by (comment, voter)."""
    stored = said()
    found = {
        (name_of(each, 0), name_of(each)): each.properties["value"].integer_value
        for each in rows("Vote")
    }
    return {key: vote for key, vote in found.items() if stored[key[0]].status != "retracted"}


def subscribers() -> dict[str, set[str]]:
    """Return the members of each set of followers according to the rows of people who follow."""
    found: dict[str, set[str]] = {}
    for each in rows("Subscription"):
        found.setdefault(each.properties["list"].string_value, set()).add(name_of(each, 0))
    for each in rows("Follow"):
        author = name_of(each, 0).rpartition("/")[0]
        found.setdefault(f"thread:{name_of(each)}", set()).add(f"~{author}")
    return found


def followers() -> dict[str, int]:
    """Return each thread's follower count, by the name of its follower list."""
    counted = {
        place.replace("thread ", "thread:", 1): numbers.get("followers", 0)
        for place, numbers in _shards("thread").items()
    }
    return {name: number for name, number in counted.items() if number}


def categories() -> dict[str, tuple[str, ...]]:
    """Return each thread's categories."""
    return {
        name_of(each): tuple(
            value.string_value for value in each.properties["categories"].array_value.values
        )
        for each in rows("Thread")
    }


def events() -> dict[str, set[str]]:
    """Return the stored events, each with the handlers that have finished it."""
    return {
        name_of(each): {done.string_value for done in each.properties["done"].array_value.values}
        for each in rows("Event")
    }


def events_of_comments() -> dict[str, set[str]]:
    """Return the stored events, except follower events."""
    return {event: done for event, done in events().items() if not event.startswith("followed/")}


def assert_tree_sound(found: Iterable[Said], counted: dict[str, int]) -> None:
    """Check that numbers are unique and within their counters, with parents one level up."""
    by_id = {row.id: row for row in found}
    assert len({(row.thread, row.parent, row.number) for row in by_id.values()}) == len(by_id)
    for row in by_id.values():
        if row.parent is None:
            assert row.level == 0
            assert 0 <= row.number < counted[row.thread]
        else:
            parent = by_id[row.parent]
            assert (parent.thread, parent.level + 1) == (row.thread, row.level)
            assert 0 < row.number <= parent.children


def assert_sums(*, is_delivered: bool = True) -> None:
    """Check that every counter equals the sum over the comments and that no event is pending."""
    found = said().values()
    assert_tree_sound(found, roots())
    assert in_threads() == ledger.in_threads(found)
    assert_listings()
    if is_delivered:
        assert events() == {}
        assert followers() == {name: len(members) for name, members in subscribers().items()}
        assert later() == ledger.later(found)


def listings() -> dict[str, dict[str, int]]:
    """Return the counts of threads by digest, for each website whose rows are complete and open."""
    texts = {name_of(each): each.properties["listings"].string_value for each in rows("Counter")}
    found: dict[str, dict[str, int]] = {}
    for name, text in texts.items():
        site = name.removeprefix("site/").removesuffix("#0")
        held = json.loads(text or "{}")
        groups = held.get("groups", 1)
        if not name.startswith("site/") or not held.get("is_complete") or not groups:
            continue
        found[site] = dict(held.get("numbers", {}))
        for group in range(1, groups):
            other = json.loads(texts[f"threads/{site}#{group}"])
            assert other["groups"] == groups
            found[site] |= other.get("numbers", {})
    return found


def assert_listings() -> None:
    """Check that the counts of threads equal their listed comments, except for pending events."""
    expected: dict[str, Numbers] = {}
    for row in said().values():
        _list(expected, row.thread, row.listed)
    for each in rows("Event"):
        if "counters" not in {
            done.string_value for done in each.properties["done"].array_value.values
        }:
            for before, after in json.loads(each.properties["changes"].string_value):
                for state, sign in ((before, 1), (after, -1)):
                    if state is not None:
                        _list(expected, state[1], sign * state[4])
    for site, found in listings().items():
        wanted = {key: number for key, number in expected.get(site, {}).items() if number}
        assert found == wanted, site


def _list(sums: dict[str, Numbers], thread: str, number: int) -> None:
    digest = base64.urlsafe_b64encode(hashlib.sha256(thread.encode()).digest()[:9]).decode()
    here = sums.setdefault(thread.partition("/")[0].partition("#")[0], {})
    here[digest] = here.get(digest, 0) + number


def _shards(kind: str) -> dict[str, Numbers]:
    found: dict[str, Numbers] = {}
    for each in rows("Counter"):
        what, _, place = each.properties["scope"].string_value.partition("/")
        if what == kind:
            sums = found.setdefault(f"{kind} {place}", {})
            for name, number in _numbers(each).items():
                sums[name] = sums.get(name, 0) + number
    return found


def _numbers(message: Any) -> Numbers:
    numbers: Numbers = json.loads(message.properties["numbers"].string_value or "{}")
    return numbers


def _only(message: Any) -> Numbers:
    numbers = _numbers(message)
    assert numbers, f"{message.key} has no numbers and should have been deleted"
    return numbers

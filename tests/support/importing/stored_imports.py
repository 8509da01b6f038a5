"""Read what an import stored, in the terms of `sample_files`."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from comments.domain import records
from comments.domain.crypto import guest_addresses
from comments.domain.ids import imported_ids
from tests.support import stored_state
from tests.support.importing.sample_files import Expected, ExpectedThread
from tests.support.threads import sample_exports


def comments(system: str, source_ids: Iterable[str], site: str = "garden") -> list[Expected]:
    """Return all stored comments, by thread and in reading order.

    Comments have their ids in the other system, or "?" if it is not one of `source_ids`. The person
    is the author id.
    """
    names = _names(system, source_ids, site)
    rows = sample_exports.rows()
    return [
        Expected(
            thread=row.thread,
            id=names.get(row.id, "?"),
            parent=None if row.reply_to is None else names.get(row.reply_to, "?"),
            status=row.status,
            created=row.created,
            name=row.author.name,
            person=row.author.id,
            website=row.author.website,
            text=row.body,
            html=row.html,
            edited=row.edited,
            up=row.up,
            down=row.down,
            pinned=row.pinned,
        )
        for row in rows
    ]


def _names(system: str, source_ids: Iterable[str], site: str) -> dict[str, str]:
    """Return the source ids by the ids of the stored comments; a trusted file keeps its ids."""
    names = {imported_ids.comment_id(site, system, each): each for each in source_ids}
    return names | {each: each for each in source_ids if system == imported_ids.OWN}


def rows() -> list[records.Comment]:
    """Return all stored comments, with their decrypted mail addresses.

    The same address is encrypted differently each time.
    """
    return [
        msgspec.structs.replace(
            row,
            author=msgspec.structs.replace(
                row.author,
                email=guest_addresses.address(
                    row.author.email, sample_exports.SECRET, now=sample_exports.NOW
                ),
            ),
        )
        for row in sample_exports.rows()
    ]


def addresses(system: str, source_ids: Iterable[str], site: str = "garden") -> dict[str, str]:
    """Return the mail addresses of the authors, in lower case, by comment."""
    names = _names(system, source_ids, site)
    assert not any("@" in row.author.email for row in sample_exports.rows())
    found = {names.get(row.id, "?"): row.author.email for row in rows()}
    return {comment: email.lower() for comment, email in found.items() if email}


def threads() -> dict[str, ExpectedThread]:
    """Return all stored threads by name."""
    found = [each.properties for each in stored_state.rows("Thread")]
    return {
        row["thread"].string_value: ExpectedThread(
            row["title"].string_value, records.ThreadState(row["state"].string_value)
        )
        for row in found
    }


def people(expected: Iterable[Expected]) -> list[set[str]]:
    """Group comments by person, so that other names for the same people do not matter."""
    groups: dict[str, set[str]] = defaultdict(set)
    for each in expected:
        groups[each.person or each.name].add(each.id)
    return sorted(groups.values(), key=sorted)


def without_person(comment: Expected) -> Expected:
    """Return a comment without its person, which `people` compares."""
    return dataclasses.replace(comment, person="")

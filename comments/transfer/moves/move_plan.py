"""Plan moves of threads: which threads move where, and which cannot. A plan stores nothing.

A list names the old and the new address or id of each page. A mapping describes many pages at once:
a host, a path or a pattern, in the form that imports use (`page_mapping`).
"""

import contextlib
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.ids import thread_ids
from comments.domain.languages import error_texts
from comments.store import reads
from comments.store.models import comment_rows, conversion
from comments.threads import thread_aliases, thread_info
from comments.transfer.checking import page_mapping

T = TypeVar("T")

MOST = 100_000  # Maximum number of lines in a list
_AT_ONCE = 100  # Threads in one look-up


class PlannedMove(msgspec.Struct, frozen=True, array_like=True):
    """A thread to move: its stored id, the id that it shows, and its new id.

    `url` is the address of the new page, or "" if it is not on one of the site's origins.
    """

    stored: str
    old: str
    new: str
    url: str


class Collision(NamedTuple):
    """A thread that cannot move, because its new id leads to another thread (`owner`)."""

    old: str
    new: str
    owner: str


class Plan(NamedTuple):
    """What a move would do.

    `missing` contains the given addresses without a thread. `same` is the number of threads that
    already show their new id. `left` is the number of the site's threads that a mapping does not
    match; it is None for a list.
    """

    moves: tuple[PlannedMove, ...]
    collisions: tuple[Collision, ...]
    missing: tuple[str, ...]
    same: int
    left: int | None


def read_list(text: str) -> list[tuple[str, str]]:
    """Read a CSV file whose lines are `old,new`. A first line `old,new` is a heading.

    Raises:
        errors.MoveRefused: a line does not have two fields, or there are too many lines.
    """
    pairs: list[tuple[str, str]] = []
    lines = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        for line in lines:
            cells = [cell.strip() for cell in line]
            if not any(cells) or (not pairs and [cell.lower() for cell in cells] == ["old", "new"]):
                continue
            if len(cells) != 2 or not all(cells):  # noqa: PLR2004 - old and new
                raise errors.MoveRefused(
                    f"Line {lines.line_num} is not an old and a new address, separated by a comma.",
                    "pages",
                )
            pairs.append((cells[0], cells[1]))
            if len(pairs) > MOST:
                raise errors.MoveRefused(f"The list has more than {MOST:,} lines.", "pages")
    except csv.Error as error:
        message = f"Line {lines.line_num} is not valid CSV: {error}."
        raise errors.MoveRefused(message, "pages") from error
    return pairs


def of_list(site: records.Site, pairs: Sequence[tuple[str, str]]) -> Plan:
    """Plan to move each thread of a list.

    Raises:
        errors.MoveRefused: an address or id is invalid, or the list names a thread twice.
    """
    wanted: dict[str, tuple[str, str, str]] = {}
    fields = ("pages", "pages") if len(pairs) > 1 else ("old", "new")
    for part in _parts(pairs):
        names = thread_aliases.stored_ids(site, [_id(site, old, fields[0]) for old, _ in part])
        for stored, (old, new) in zip(names, part, strict=True):
            if stored in wanted:
                message = f"{old!r} and {wanted[stored][0]!r} are the same thread."
                raise errors.MoveRefused(message, fields[0])
            target = _id(site, new, fields[1])
            wanted[stored] = (old, target, page_url(site, new, target, fields[1]))
    moves, missing = [], []
    for some in _parts(list(wanted.items())):
        keys = [comment_rows.thread_key(records.ThreadName(site.id, name)) for name, _ in some]
        for (stored, (old, new, url)), row in zip(some, reads.get_multi(keys), strict=True):
            if row is None:
                missing.append(old)
            else:
                moves.append(PlannedMove(stored, row.alias or stored, new, url))
    return _plan_of(site, moves, tuple(missing), None)


def of_mapping(
    site: records.Site, mapping: page_mapping.PageMapping, *, most: int | None = None
) -> Plan:
    """Plan to move every thread of the site whose page a mapping matches.

    Raises:
        errors.MoveRefused: the site has more than `most` threads.
    """
    moves, left = [], 0
    query = reads.Query("Thread", where=(("site", "=", site.id),))
    for message in reads.walk(query):
        stored = message.properties["thread"].string_value
        shown = message.properties["alias"].string_value or stored
        move = _mapped_move(site, mapping, stored, shown, message.properties["url"].string_value)
        if move is None:
            left += 1
        else:
            moves.append(move)
        if most is not None and left + len(moves) > most:
            raise errors.MoveRefused(
                f"The site has more than {most:,} pages. Use the command flatthread thread move."
            )
    return _plan_of(site, moves, (), left)


def of_rules(before: records.Site, after: records.Site, *, most: int | None = None) -> Plan:
    """Plan to move every thread whose page gets another id by a change of the site's rules.

    Raises:
        errors.MoveRefused: the site has more than `most` threads.
    """
    moves = []
    query = reads.Query("Thread", where=(("site", "=", before.id),))
    for number, message in enumerate(reads.walk(query), 1):
        stored = message.properties["thread"].string_value
        shown = message.properties["alias"].string_value or stored
        address = _address(before, shown, message.properties["url"].string_value)
        if address:
            moves.append(PlannedMove(stored, shown, thread_ids.page_id(address, after), ""))
        if most is not None and number > most:
            raise errors.MoveRefused(
                f"The site has more than {most:,} pages. Use the command flatthread site set.",
                "ignore_www",
            )
    return _plan_of(after, moves, (), None)


def _mapped_move(
    site: records.Site, mapping: page_mapping.PageMapping, stored: str, shown: str, url: str
) -> PlannedMove | None:
    """Map a thread that is named by its page."""
    address = _address(site, shown, url)
    mapped = mapping.apply(address)
    if not address or not mapped.by:
        return None
    try:
        new = thread_ids.page_id(mapped.url, site)
    except errors.BadInput:
        return None
    return PlannedMove(stored, shown, new, page_url(site, mapped.url, new))


def _address(site: records.Site, shown: str, url: str) -> str:
    """Return the address of a thread's page, or "" if the thread is not named by its page.

    The thread's own address, `url`, tells its scheme, slashes and ignored parts.
    """
    for address in (url, f"https://{shown}"):
        with contextlib.suppress(errors.BadInput):
            if thread_ids.page_id(address, site) == shown:
                return address
    return ""


def _plan_of(
    site: records.Site, moves: Iterable[PlannedMove], missing: tuple[str, ...], left: int | None
) -> Plan:
    """Divide moves into those that are possible, collisions, and threads that are already there."""
    possible: list[PlannedMove] = []
    collisions: list[Collision] = []
    same = 0
    taken: dict[str, str] = {}
    for part in _parts(list(moves)):
        for move, owner in zip(part, _owners(site, part), strict=True):
            other = owner if owner not in {"", move.stored} else taken.get(move.new, "")
            if move.old == move.new:
                same += 1
            elif other:
                collisions.append(Collision(move.old, move.new, other))
            else:
                taken[move.new] = move.stored
                possible.append(move)
    return Plan(tuple(possible), tuple(collisions), missing, same, left)


def _owners(site: records.Site, moves: Sequence[PlannedMove]) -> list[str]:
    """Return the stored id of the thread to which each new id leads now, or ""."""
    names = [records.ThreadName(site.id, move.new) for move in moves]
    threads = reads.get_multi([comment_rows.thread_key(name) for name in names])
    aliases = reads.get_multi([comment_rows.thread_alias_key(name) for name in names])
    return [
        conversion.thread_record(thread).name.id if thread else alias.thread_id if alias else ""
        for thread, alias in zip(threads, aliases, strict=True)
    ]


def stored_id(site: records.Site, given: str, field: str) -> str:
    """Return the stored id of the thread to which an address or id leads.

    Raises:
        errors.MoveRefused: the address or id, which the caller calls `field`, is invalid.
    """
    return thread_aliases.stored_id(site, _id(site, given, field))


def _id(site: records.Site, given: str, field: str) -> str:
    """Return the canonical id that an address or id names."""
    try:
        if _is_address(given):
            return thread_ids.page_id(given, site)
        return thread_ids.canonical_id(given)
    except errors.BadInput as error:
        raise errors.MoveRefused(f"{given!r}: {error_texts.sentence(error)}", field) from error


def _is_address(given: str) -> bool:
    return given.startswith("/") or "://" in given


def page_url(site: records.Site, given: str, thread: str, field: str = "new") -> str:
    """Return the address of a thread's new page, or "" if it is not on the site.

    Raises:
        errors.MoveRefused: the caller's `field` contains words, and not an address or id.
    """
    if not _is_address(given) and len(given.split()) > 1:
        raise errors.MoveRefused(
            f"{given!r} is not the address of a page. Begin an address with https:// or /.", field
        )
    address = thread_ids.absolute(given, site.origins)
    if "://" in address and (known := thread_info.address(address, site)):
        return thread_ids.page_url(known, thread, site)
    return thread_info.page_address("", thread, site)


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]

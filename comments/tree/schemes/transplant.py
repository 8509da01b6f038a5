"""Move comments from one thread of a site to another, in one transaction.

The transaction reads both threads with all their comments. The caller divides the comments between
the threads as they will be (`ThreadTree`), and `apply` computes their places (`reshaping`) and
patches all of them. One commit therefore moves a whole tree, as in `scheme_change`: a post that
races with it is either one of the moved comments or placed afterwards, no process uses previous
copies or buckets, and cursors of the previous trees are refused.

The ids of comments stay, and with them everything that is stored under these ids: votes, reports,
classifier answers, unread replies. The votes name the thread, so the commit changes them too. The
events of the commit update the counters of the site, the months and the declared counters.

A slug that a comment leaves leads to the comment from every id of the thread that it leaves
(`slugs`): it is stored with the digests of these ids.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from comments import errors
from comments.domain import categories, records
from comments.domain.counters.counting import CountedChange as Counted
from comments.domain.ids import sorthash
from comments.domain.records import Status
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion, schema
from comments.threads import category_journal, naming
from comments.threads.comment_flags import OWNER
from comments.tree import votes
from comments.tree.counters import in_transaction, sharding
from comments.tree.schemes import reshaping, scheme_change

OUTSIDE = "~"  # The parent of a root that comes from another thread; its date decides its place.


class StoredTree(NamedTuple):
    """A thread as stored: its row, and its comments as records and as messages, by id."""

    thread: comment_rows.ThreadRow
    rows: dict[str, records.Comment]
    messages: dict[str, Any]


class ThreadTree(NamedTuple):
    """A thread as it will be: its row, and its comments by id.

    The `parent` and the `number` of a comment are the place that it should get, if its order
    permits. No root gets a number below `first`. `copies` maps the ids of hidden comments to the
    comments that readers see instead; the slugs of the former lead to the latter. A comment that
    comes from another thread may also have another status.
    """

    thread: comment_rows.ThreadRow
    rows: Mapping[str, records.Comment]
    first: int = 0
    copies: Mapping[str, str] = MappingProxyType({})


def read(site: sorthash.Scheme, name: records.ThreadName) -> StoredTree | None:
    """Read a thread with all its comments, or return None if it does not exist.

    `site` is the scheme of the site, which applies to threads that store no scheme.
    """
    thread = reads.get(comment_rows.thread_key(name))
    if thread is None:
        return None
    thread.scheme = sorthash.encode_scheme(conversion.scheme_of(thread, site))
    where = (("thread", "=", thread.key.id()),)
    query = reads.Query("Comment", where=where, order=("sort_hash",))
    messages = {message.key.path[-1].name: message for message in reads.fetch(query)}
    rows = {key: conversion.comment_from_message(messages[key]) for key in messages}
    return StoredTree(thread, rows, messages)


def branch(rows: Mapping[str, records.Comment], roots: Iterable[str]) -> set[str]:
    """Return the ids of comments and of all comments that answer them, at any distance."""
    below: dict[str | None, list[str]] = {}
    for comment_id, answered in reshaping.answered_ids(rows).items():
        below.setdefault(answered, []).append(comment_id)
    waiting, reached = [key for key in roots if key in rows], set[str]()
    while waiting:
        comment_id = waiting.pop()
        if comment_id not in reached:
            reached.add(comment_id)
            waiting += below.get(comment_id, ())
    return reached


def place_by_date(
    rows: Mapping[str, records.Comment], ids: Iterable[str]
) -> dict[str, records.Comment]:
    """Let dates decide the places of those of these comments whose parent is not among them."""
    kept = {comment_id: rows[comment_id] for comment_id in ids}
    return {
        row.id: row if row.parent in kept else msgspec.structs.replace(row, parent=OUTSIDE)
        for row in kept.values()
    }


def count_renamed(trees: Sequence[ThreadTree]) -> int:
    """Return how many comments of the trees will have another slug than now."""
    return sum(
        tree.rows[key].slug != place.slug for tree in trees for key, place in _places(tree).items()
    )


def apply(
    stored: Sequence[StoredTree],
    trees: Sequence[ThreadTree],
    left: Mapping[str, Sequence[str]],
    *,
    run: str,
    now: datetime,
) -> tuple[str, ...]:
    """Write the trees in place of the stored ones, and return the ids of the events to deliver.

    A stored thread that is in no tree is deleted.

    `left` contains the ids of each stored thread, by key name, and `run` identifies the change.

    Raises:
        errors.Conflict: the threads are too large for one commit, a thread is damaged, or a comment
            has more replies than the scheme of its thread can number.
    """
    messages = {key: message for tree in stored for key, message in tree.messages.items()}
    changes = [change for tree in trees for change in _write_tree(tree, messages, left)]
    remaining = {tree.thread.key.id(): tree.thread for tree in trees}
    for key, thread in remaining.items():
        parts = (_part(change, key) for _, change in changes)
        counted = [part for part in parts if part != Counted(None, None)]
        transactions.apply(in_transaction.counter_writes(_name(thread), counted))
    for thread, _, _ in stored:
        _move_votes(thread.key.id(), changes)
        if thread.key.id() not in remaining:
            _delete(thread)
    events = scheme_change.note_changes(changes, run=run, now=now)
    if transactions.pending_bytes() > scheme_change.MOST_BYTES:
        raise errors.Conflict("thread-too-large")
    return events


def _write_tree(
    tree: ThreadTree, messages: Mapping[str, Any], left: Mapping[str, Sequence[str]]
) -> list[tuple[records.Comment, Counted]]:
    """Patch the comments of a tree, and return the changes to count."""
    thread, key = tree.thread, tree.thread.key.id()
    named = _choose_name(tree, messages)
    places = _places(tree)
    thread.child_count = max(thread.child_count or 0, reshaping.needed_root_count(places))
    thread.shape = (thread.shape or 0) + 1
    naming.forget(thread)
    changes: list[tuple[records.Comment, Counted]] = []
    patches: list[ownership.Patch] = []
    slugs: dict[str, list[str]] = defaultdict(list)
    for copy, shown in tree.copies.items():
        digests = left.get(messages[copy].properties["thread"].string_value, ())
        slug = tree.rows[copy].slug
        slugs[shown] += [f"{slug}{scheme_change.FROM}{digest}" for digest in digests]
    for comment_id, place in places.items():
        row, message = tree.rows[comment_id], messages[comment_id]
        before = conversion.state_from_message(message)
        after = before._replace(listed=place.listed)
        values: dict[str, Any] = {}
        if before.thread != key:
            values = {
                "thread": key, "thread_id": thread.thread, "reply_to": row.reply_to,
                "categories": list(thread.categories), "pinned": comment_id in thread.pins,
                "category_terms": categories.terms(thread.categories),
            }  # fmt: skip
            after = after._replace(
                thread=key, categories=tuple(thread.categories), reply=row.reply_to is not None,
                status=row.status.value,
            )  # fmt: skip
            if before.status != row.status:
                stood = before.status if row.status is Status.HIDDEN else ""
                values |= {"status": row.status.value, "stood": stood}
        patches.append(
            scheme_change.patch(
                row, place, message, thread.shape, is_first=not patches,
                moved=values, left=left.get(before.thread, ()), further=slugs[comment_id],
            )
        )  # fmt: skip
        if before != after:
            changes.append((row, Counted(before, after)))
    transactions.apply(ownership.Writes(OWNER, put=(thread, *named), patch=tuple(patches)))
    return changes


def _places(tree: ThreadTree) -> dict[str, reshaping.NewPlace]:
    return reshaping.places(sorthash.decode_scheme(tree.thread.scheme), tree.rows, tree.first)


def _choose_name(tree: ThreadTree, messages: Mapping[str, Any]) -> tuple[schema.StoredRow, ...]:
    """If the comment that names the thread is not in the tree, choose another one."""
    thread = tree.thread
    approved = {key: row for key, row in tree.rows.items() if row.status is Status.APPROVED}
    if naming.is_unknown(thread) or thread.named_by in approved:
        return ()
    candidates = (
        naming.NamingCandidate(row.created, row.sort_hash, key, brought)
        for key, row in approved.items()
        if (brought := messages[key].properties["brought"].string_value)
    )
    rows = naming.take(thread, min(candidates, default=None), ())
    return tuple(row for row in rows if row is not thread)


def _part(change: Counted, key: str) -> Counted:
    """Return the part of a change that concerns the thread with this key name."""
    old, new = (state if state and state.thread == key else None for state in change)
    return Counted(old, new)


def _move_votes(key: str, changes: Sequence[tuple[records.Comment, Counted]]) -> None:
    targets = {
        row.id: change.new.thread
        for row, change in changes
        if change.new and change.old and change.old.thread == key != change.new.thread
    }
    if targets:
        transactions.apply(votes.transfer_writes(key, targets))


def _delete(thread: comment_rows.ThreadRow) -> None:
    """Delete a thread without comments, and its counters. The number of its followers stays."""
    naming.forget(thread)
    gone = (thread.key, category_journal.key(thread.key.id()))
    transactions.apply(
        ownership.Writes(OWNER, delete=gone),
        sharding.removal_writes(_name(thread), thread.shards or 1),
    )


def _name(thread: comment_rows.ThreadRow) -> records.ThreadName:
    return records.ThreadName(thread.site, thread.thread)

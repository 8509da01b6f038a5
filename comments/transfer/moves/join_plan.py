"""Plan to merge two threads into one, or to split a discussion off. A plan stores nothing.

    plan = join_plan.of_merge(site, "page-b", "page-a")
    plan = join_plan.of_split(site, comment_id, "/new-page")

`thread_joins` runs a plan. It divides the comments again, with the same code, in its transaction.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.records import Status
from comments.notifications import thread_followers
from comments.store import connection, reads, transactions
from comments.store.models import comment_rows
from comments.transfer.moves import move_plan
from comments.tree import placement, status_changes
from comments.tree.bulk import stored_copies
from comments.tree.counters import totals
from comments.tree.schemes import reshaping, transplant
from comments.tree.schemes.transplant import StoredTree, ThreadTree

COMPARED = (Status.APPROVED, Status.PENDING)  # Other comments have no copies that matter.
SECONDS = 240.0  # Maximum seconds to read two threads; the service aborts transactions after 270 s.


class JoinPlan(NamedTuple):
    """What a merge or a split would do.

    `source` and `target` are the ids of the stored threads, and `old` and `new` the ids that these
    threads show. `comment` is the comment to split off,
    or "". `is_new` tells whether a split creates the target, whose page has the address `url`.
    `comments` is the number of comments that move, `kept` the number of the other comments of both
    threads, and `renamed` the number of all comments that get another slug. `followers` is the
    number of followers who will follow the target instead, `unpinned` the number of comments that
    lose their pins. `settings` contains the names and values of the settings of the source (`state`
    and `policy`) that differ from those of the target, and are lost. `doubled` is the number of
    comments that are hidden, because the target has them too.
    """

    source: str
    target: str
    old: str
    new: str
    comment: str
    is_new: bool
    url: str
    comments: int
    kept: int
    renamed: int
    followers: int
    unpinned: int
    settings: tuple[tuple[str, str], ...]
    doubled: int

    @property
    def what(self) -> str:
        """Describe the operation for the list of moves."""
        if self.comment:
            return f"split {self.comment} from {self.old} into {self.new}"
        return f"merge {self.old} into {self.new}"


class Division(NamedTuple):
    """The threads as stored and as they will be, and the ids of the comments that move."""

    source: StoredTree
    target: StoredTree
    trees: tuple[ThreadTree, ...]
    moved: Sequence[str]
    is_new: bool


def of_merge(site: records.Site, source: str, target: str, *, most: int | None = None) -> JoinPlan:
    """Plan to merge a thread into another one, given their addresses or ids.

    Raises:
        errors.MoveRefused: an address is invalid, a thread does not exist, both are the same, or
            readers see more than `most` comments in them.
        errors.Conflict: see `transplant.apply`.
    """
    return _plan(site, move_plan.stored_id(site, source, "source"), target, "", most)


def of_split(site: records.Site, comment: str, target: str, *, most: int | None = None) -> JoinPlan:
    """Plan to split off a comment, given its id, with all comments below it.

    `target` is the address or id of another page. If this page has a thread, the comments join it.

    Raises:
        errors.MoveRefused: the address is invalid, the site has no such comment, or the target is
            the comment's thread, the thread has no other comments, or readers see more than `most`
            comments in both threads.
        errors.Conflict: see `transplant.apply`.
    """
    is_id = comment_rows.is_comment_id(comment)
    row = reads.get(comment_rows.comment_key(comment)) if is_id else None
    if row is None or row.site != site.id:
        raise errors.MoveRefused(f"The site {site.id} has no comment {comment}.", "comment")
    return _plan(site, row.thread_id, target, comment, most)


def _plan(site: records.Site, source: str, given: str, comment: str, most: int | None) -> JoinPlan:
    target = move_plan.stored_id(site, given, "target")
    if most is not None and sum(totals.listed_counts(site.id, (source, target))) > most:
        raise errors.MoveRefused(
            f"The pages have more than {most:,} comments. Use the command flatthread thread "
            f"{'split' if comment else 'merge'}."
        )
    with connection.within(SECONDS):
        divided = transactions.snapshot(lambda: divide(site, source, target, comment))
    old, new = divided.source.thread, divided.target.thread
    lost = [
        (name, getattr(old, name))
        for name in ("state", "policy")
        if not comment and getattr(old, name) and getattr(old, name) != getattr(new, name)
    ]
    name = records.ThreadName(site.id, source)
    total = sum(len(tree.rows) for tree in divided.trees)
    pinned = sum(divided.source.rows[key].pinned for key in divided.moved)
    return JoinPlan(
        source=source,
        target=target,
        old=old.alias or source,
        new=new.alias or target,
        comment=comment,
        is_new=divided.is_new,
        url=move_plan.page_url(site, given, target, "target") if divided.is_new else new.url,
        comments=len(divided.moved),
        kept=total - len(divided.moved),
        renamed=transplant.count_renamed(divided.trees),
        followers=0 if comment else thread_followers.count(name).all,
        unpinned=pinned - sum(key in new.pins for key in divided.moved),
        settings=tuple(lost),
        doubled=len(divided.trees[-1].copies),
    )


def divide(site: records.Site, source: str, target: str, comment: str) -> Division:
    """Read both threads, given their stored ids, and divide their comments between them.

    Raises:
        errors.MoveRefused: see `of_merge` and `of_split`.
    """
    if source == target:
        raise errors.MoveRefused("Both addresses lead to the same thread.", "target")
    old, new = read(site, source), read(site, target)
    if old is None or (new is None and not comment):
        name, field = (source, "source") if old is None else (target, "target")
        raise errors.MoveRefused(f"There is no thread {name}.", field)
    is_new = new is None
    moved = transplant.branch(old.rows, [comment]) if comment else old.rows.keys()
    rest = {key: row for key, row in old.rows.items() if key not in moved}
    if not moved or (comment and not rest):
        raise errors.MoveRefused(
            f"The thread {source} has no other comments. Move the thread instead."
            if comment
            else f"The thread {source} has no comments.",
            "comment" if comment else "source",
        )
    if new is None:
        new = StoredTree(_new_thread(site, target, old, comment), {}, {})
    copies = {} if comment else find_copies(old.rows, new.rows)
    pins = [key for key in old.thread.pins if key in moved and key not in copies]
    new.thread.pins = [*new.thread.pins, *pins][: status_changes.MOST_PINS]
    old.thread.pins = [key for key in old.thread.pins if key in rest]
    new.thread.active = records.newest([new.thread.active, old.thread.active])
    placed = transplant.place_by_date(old.rows, moved)
    if comment:
        placed[comment] = msgspec.structs.replace(placed[comment], reply_to=None)
    _hide_copies(old.rows, copies, placed)
    # No slug of either thread is given to another comment, so old links stay unambiguous.
    first = 0 if is_new else max(old.thread.child_count, new.thread.child_count)
    joined = ThreadTree(new.thread, {**new.rows, **placed}, first, copies)
    trees = (ThreadTree(old.thread, rest), joined) if comment else (joined,)
    return Division(old, new, trees, tuple(placed), is_new)


def find_copies(
    rows: Mapping[str, records.Comment], others: Mapping[str, records.Comment]
) -> dict[str, str]:
    """Return the comments that two threads have in common, each with its id in the other thread.

    A merge hides such a comment of its source, and its replies answer the target's comment instead.
    """
    found: dict[object, list[str]] = defaultdict(list)
    for row in others.values():
        found[content(row)].append(row.id)
    return {
        row.id: found[content(row)].pop(0)
        for row in rows.values()
        if row.status in COMPARED and row.html and found.get(content(row))
    }


def _hide_copies(
    rows: Mapping[str, records.Comment],
    copies: Mapping[str, str],
    placed: dict[str, records.Comment],
) -> None:
    for key, answered in reshaping.answered_ids(rows).items():
        if answered and answered in copies:
            placed[key] = msgspec.structs.replace(
                placed[key], parent=transplant.OUTSIDE, reply_to=copies[answered]
            )
        if key in copies:
            placed[key] = msgspec.structs.replace(placed[key], status=Status.HIDDEN)


def content(row: records.Comment) -> tuple[object, ...]:
    """Return what is equal in comments that are the same."""
    return row.status, stored_copies.content(row.author.name, row.created, row.html)


def read(site: records.Site, thread: str) -> StoredTree | None:
    return transplant.read(site.scheme, records.ThreadName(site.id, thread))


def _new_thread(
    site: records.Site, target: str, source: StoredTree, comment: str
) -> comment_rows.ThreadRow:
    """Make the thread of a split, with the settings and the categories of the source."""
    name, old = records.ThreadName(site.id, target), source.thread
    created = source.rows[comment].created
    row = placement.new_thread(name, created, placement.site_scheme([name], site.scheme))
    row.populate(state=old.state, policy=old.policy, categories=list(old.categories))
    return row

"""The comment tree: the only module that changes its shape, and the only one that writes comments.

Every verb is called inside `datastore.transaction`, reads what it needs, decides, and returns a
`Change` whose `writes` the caller applies in the same transaction. Every verb is safe to run
again after its own commit was applied.

What must stay true, whatever is interrupted or runs at once (`repair` checks it):

- a comment's hash is its parent's hash plus the segment of its number; a root's is the segment;
- numbers come from the parent's child counter (a root's from the thread's), are never reused,
  and counter, number and comment are stored by one commit: no gap, no orphan;
- a comment is listed when it is approved or when something listed stands below it;
- nothing that was retracted or rejected comes back.

A reply writes its parent and not its thread, so replies to different parents do not meet. A root
writes its thread.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from google.cloud import ndb

from comments import counters, datastore, errors, models, outbox, records, shards, sorthash, tallies
from comments.counters import Change as Counted
from comments.records import Status

_OWNER = "tree"


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """A body with what it was rendered to, and by which renderer."""

    body: str
    html: str
    renderer: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A comment on its way into a thread; everything but its place in the tree.

    `fingerprint` tells a repeat of the same request from another one under the same id.
    """

    id: str
    name: records.ThreadName
    reply_to: str | None
    author: records.Author
    text: Text
    fingerprint: bytes
    created: datetime
    title: str = ""
    url: str = ""
    categories: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """What a verb did: the comment as it will stand, and what to put. A repeat puts nothing.

    `writes` holds what other owners put in the same commit too: apply all of it. `event` tells of
    the change.
    """

    comment: records.Comment
    writes: tuple[datastore.Writes, ...] = ()
    event: str = ""
    is_new: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Imported:
    """What a batch of imported comments puts, and how many of them were not there yet."""

    writes: tuple[datastore.Writes, ...]
    added: int
    event: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Refiled:
    """What counts comments under other categories, and how many of them."""

    writes: tuple[datastore.Writes, ...]
    changed: int
    event: str = ""


def append(scheme: sorthash.Scheme, draft: Draft, turn: shards.Turn = tallies.FIRST) -> Change:
    """Place a new comment, or recognise that it was placed already.

    `turn` says in which shard of the thread's counters it is counted.

    Raises:
        errors.NotFound: the answered comment is not there, not in this thread, or not public.
        errors.Conflict: the answered comment was retracted, the thread is closed, or its parent
            holds as many children as the scheme can number.
        errors.KeyReused: the id is taken by a comment with other content.
    """
    entry = tallies.Entry(draft.name, [draft.author.id], turn)
    keys = [models.thread_key(draft.name), *entry.keys]
    if draft.reply_to is not None:
        keys.append(models.comment_key(draft.reply_to))
    # Only then: it is inserted, so that one which is there already is met without being read.
    if datastore.may_have_run():
        earlier = _earlier(draft)
        if earlier is not None:
            return earlier
    thread, *others = datastore.get_multi(keys)
    counted, answered = others[: len(entry.keys)], others[len(entry.keys) :]
    thread = thread or _new_thread(
        draft.name, draft.title, draft.url, draft.created, draft.categories
    )
    row = _new_row(draft, reply_to=draft.reply_to)
    try:
        parent = _placed(scheme, draft, row, thread, answered)
    except errors.FlatthreadError:
        earlier = _earlier(draft)
        if earlier is not None:
            return earlier
        raise
    entry.fill(thread, counted)
    changes = [Counted(None, models.comment_state(row))]
    event = outbox.event_id(draft.id, row.revision)
    writes = (
        datastore.Writes(_OWNER, insert=(row,), put=(thread if parent is None else parent,)),
        entry.writes(changes),
        outbox.tell(outbox.Kind.POSTED, event, changes, now=draft.created),
    )
    return Change(models.comment_record(row), writes, event, is_new=True)


def _placed(
    scheme: sorthash.Scheme,
    draft: Draft,
    row: models.Comment,
    thread: models.Thread,
    answered: Sequence[models.Comment | None],
) -> models.Comment | None:
    """Give the row its place, if it may have one; the parent it took its number from."""
    if thread.state != records.ThreadState.OPEN:
        raise errors.Conflict("the thread takes no more comments", code="thread-closed")
    target = _answerable(answered[0], draft) if answered else None
    parent = _tree_parent(scheme, target)
    _place(scheme, row, parent, thread)
    return parent


def _earlier(draft: Draft) -> Change | None:
    """What came of an earlier request with the draft's id, if there was one."""
    row = datastore.get(models.comment_key(draft.id))
    return None if row is None else _repeat(row, draft)


def _repeat(row: models.Comment, draft: Draft) -> Change:
    same_thread = row.thread == models.thread_key_name(draft.name)
    if not same_thread or row.fingerprint != draft.fingerprint:
        raise errors.KeyReused("this idempotency key was used for another comment")
    return Change(models.comment_record(row))


def _new_thread(
    name: records.ThreadName,
    title: str,
    url: str,
    now: datetime,
    categories: Sequence[str] = (),
) -> models.Thread:
    return models.Thread(
        key=models.thread_key(name),
        site=name.site,
        thread=name.id,
        title=title,
        url=url,
        categories=list(categories),
        created=now,
    )


def _answerable(row: models.Comment | None, draft: Draft) -> models.Comment:
    """The comment a draft answers; refuses those that take no replies."""
    wanted = draft.reply_to or ""
    if row is None or row.thread != models.thread_key_name(draft.name):
        raise errors.NotFound("parent", wanted)
    if row.status == Status.RETRACTED:
        raise errors.Conflict("the answered comment was retracted", code="parent-retracted")
    if row.status != Status.APPROVED:
        # To a reader a comment that is held or rejected is not there.
        raise errors.NotFound("parent", wanted)
    return row


def _tree_parent(scheme: sorthash.Scheme, answered: models.Comment | None) -> models.Comment | None:
    """Where a reply goes: below the answered comment, or beside it on the deepest level."""
    if answered is None or answered.level < scheme.levels - 1:
        return answered
    return _parent_row(answered)


def _parent_row(row: models.Comment) -> models.Comment | None:
    parent_id = models.parent_id(row)
    if parent_id is None:
        return None
    parent = datastore.get(models.comment_key(parent_id))
    if parent is None:
        raise errors.Conflict("the thread is damaged here: run repair", code="thread-damaged")
    found: models.Comment = parent
    return found


def _new_row(
    draft: Draft,
    *,
    reply_to: str | None,
    status: Status = Status.APPROVED,
    source: str | None = None,
) -> models.Comment:
    return models.Comment(
        key=models.comment_key(draft.id),
        site=draft.name.site,
        thread=models.thread_key_name(draft.name),
        thread_id=draft.name.id,
        reply_to=reply_to,
        author_name=draft.author.name,
        author_website=draft.author.website,
        author_email=draft.author.email,
        author_id=draft.author.id,
        body=draft.text.body,
        html=draft.text.html,
        renderer=draft.text.renderer,
        status=status.value,
        listed=status is Status.APPROVED,
        # What readers never saw and do not see is nothing to fold.
        unfolded=status is Status.APPROVED,
        created=draft.created,
        changed=draft.created if status is Status.APPROVED else None,
        fingerprint=draft.fingerprint,
        source=source,
    )


def _place(
    scheme: sorthash.Scheme,
    row: models.Comment,
    parent: models.Comment | None,
    thread: models.Thread,
) -> None:
    """Take the next number of `parent`, or of the thread, and write the row's place from it."""
    if parent is None:
        # Roots count from 0, so the number is the counter before it grows.
        row.number = thread.child_count
        thread.child_count += 1
    else:
        parent.child_count += 1
        row.number = parent.child_count
    above = "" if parent is None else parent.sort_hash
    try:
        row.sort_hash = sorthash.child(scheme, above, row.number)
    except sorthash.BadSortHash as error:
        raise errors.Conflict("no more replies fit here", code="parent-full") from error
    row.parent = None if parent is None else parent.key.id()
    row.level = 0 if parent is None else parent.level + 1
    row.slug = sorthash.slug(scheme, row.sort_hash)
    row.populate(categories=list(thread.categories))


def edit(
    comment_id: str, text: Text, *, now: datetime, check: Callable[[records.Comment], None]
) -> Change:
    """Replace a comment's text. `check` sees the stored comment first and raises if it may not be.

    Raises:
        errors.NotFound: there is no such comment, or it was retracted.
    """
    row = _existing(comment_id)
    check(models.comment_record(row))
    if row.status == Status.RETRACTED:
        raise errors.NotFound("comment", comment_id)
    if row.body == text.body and row.renderer == text.renderer:
        return Change(models.comment_record(row))
    before = models.comment_state(row)
    row.body, row.html, row.renderer = text.body, text.html, text.renderer
    row.edited = now
    _touch(row, was_listed=row.listed)
    return _changed_rows(outbox.Kind.EDITED, [(before, row)], now=now)


def retract(comment_id: str, *, now: datetime, check: Callable[[records.Comment], None]) -> Change:
    """Erase a comment's content and its author. Its place, its number and its replies stay.

    While something listed stands below it, it stays listed as a tombstone; with the last of those
    the tombstones above it go too. Retracting again changes nothing.

    Raises:
        errors.NotFound: there is no such comment.
    """
    row = _existing(comment_id)
    check(models.comment_record(row))
    if row.status == Status.RETRACTED:
        return Change(models.comment_record(row))
    before = models.comment_state(row)
    _erase(row)
    row.edited, was_listed = now, row.listed
    row.listed = row.child_count > 0 and _has_listed_below(row, without="")
    _touch(row, was_listed=was_listed)
    settled = () if row.listed else _settled_tombstones(row)
    return _changed_rows(outbox.Kind.RETRACTED, [(before, row), *settled], now=now)


def count_votes(comment_id: str, cast: tuple[int, int], *, now: datetime) -> Change:
    """Write how many votes for and against a comment are cast, beside those that were imported.

    Readers see it like every change; nothing is taken away, so no bucket has to go for it. A
    retracted comment has no votes any more.

    Raises:
        errors.NotFound: there is no such comment.
    """
    row = _existing(comment_id)
    votes = _with_imported(row, cast)
    known = (row.up, row.down, row.score, row.cast_up or 0, row.cast_down or 0)
    if row.status == Status.RETRACTED or known == votes:
        return Change(models.comment_record(row))
    before = models.comment_state(row)
    row.up, row.down, row.score, row.cast_up, row.cast_down = votes
    text_revision = row.text_revision or row.revision
    row.revision += 1
    row.text_revision = text_revision
    row.unfolded = row.unfolded or row.listed or row.shelved
    return _changed_rows(outbox.Kind.VOTED, [(before, row)], now=now)


def _with_imported(row: models.Comment, cast: tuple[int, int]) -> tuple[int, int, int, int, int]:
    up = row.up - (row.cast_up or 0) + cast[0]
    down = row.down - (row.cast_down or 0) + cast[1]
    return up, down, up - down, *cast


def _changed_rows(
    kind: outbox.Kind,
    changed: Sequence[tuple[counters.State, models.Comment]],
    *,
    now: datetime,
) -> Change:
    """The change of the first row and of those that changed with it, each with its state before."""
    row = changed[0][1]
    counted = [Counted(before, models.comment_state(after)) for before, after in changed]
    name = records.ThreadName(row.site, row.thread_id)
    event = outbox.event_id(row.key.id(), row.revision)
    writes = (
        datastore.Writes(_OWNER, put=tuple(after for _, after in changed)),
        tallies.entered(name, counted),
        outbox.tell(kind, event, counted, now=now),
    )
    return Change(models.comment_record(row), writes, event)


def _existing(comment_id: str) -> models.Comment:
    row = datastore.get(models.comment_key(comment_id)) if comment_id else None
    if row is None:
        raise errors.NotFound("comment", comment_id)
    found: models.Comment = row
    return found


def _touch(row: models.Comment, *, was_listed: bool) -> None:
    """Mark a change readers can see. `was_listed`: they saw the row before it."""
    row.revision += 1
    row.text_revision = None  # this one
    # What readers neither saw nor see is nothing to fold: ten thousand held comments cost nobody.
    row.unfolded = row.unfolded or row.listed or row.shelved
    # A bucket may hold what this change took away.
    row.rewrites = row.unfolded
    if was_listed or row.listed:
        row.changed = _changed(row)


def _changed(row: models.Comment) -> datetime | None:
    """When readers last got to see another state of the row. Never back, whose clock it may be."""
    written: tuple[datetime | None, ...] = (row.changed, row.created, row.edited)
    return records.newest(written)


def _erase(row: models.Comment) -> None:
    row.status = Status.RETRACTED.value
    row.body = row.html = row.renderer = ""
    row.author_name = row.author_website = row.author_email = row.author_id = ""
    row.up = row.down = row.score = row.cast_up = row.cast_down = 0


def _settled_tombstones(
    row: models.Comment,
) -> Iterator[tuple[counters.State, models.Comment]]:
    """Unlist the tombstones above `row` that have nothing listed left below them.

    Yields each with its state before.
    """
    below = row.sort_hash
    parent = _parent_row(row)
    while parent is not None and parent.listed and parent.status != Status.APPROVED:
        if _has_listed_below(parent, without=below):
            return
        before = models.comment_state(parent)
        parent.listed = False
        _touch(parent, was_listed=True)
        yield before, parent
        below = parent.sort_hash
        parent = _parent_row(parent)


def _has_listed_below(row: models.Comment, *, without: str) -> bool:
    """Whether a listed comment stands below `row`, the subtree at hash `without` left out.

    Asked inside the transaction, so two that retract the last two replies at once cannot both
    believe that the other one's is still there.
    """
    low, high = sorthash.subtree_range(row.sort_hash)
    ranges = [(low, high)]
    if without:
        gap_low, gap_high = sorthash.subtree_range(without)
        ranges = [(low, gap_low), (gap_high, high)]
    return any(_any_listed(row, *bounds) for bounds in ranges)


def _any_listed(row: models.Comment, low: str, high: str) -> bool:
    # The row itself is still stored as listed: start just above its own hash.
    operator = ">" if low == row.sort_hash else ">="
    query = datastore.Query(
        "Comment",
        where=(
            ("thread", "=", row.thread),
            ("listed", "=", True),
            ("sort_hash", operator, low),
            ("sort_hash", "<", high),
        ),
        order=("sort_hash",),
        limit=1,
        keys_only=True,
    )
    return any(True for _ in datastore.fetch(query))


def append_imported(  # noqa: PLR0913 - a batch with the thread it may have to make
    scheme: sorthash.Scheme,
    name: records.ThreadName,
    nodes: Sequence[records.ImportedComment],
    *,
    title: str,
    url: str,
    state: records.ThreadState,
    now: datetime,
) -> Imported:
    """Place comments of another system's export behind what is there, in the order given.

    Answered comments come before their replies, in `nodes` or in the store. Those that are
    present already are left as they are. Replies may stand below retracted or held comments,
    which are then listed as tombstones.

    Raises:
        errors.NotFound: a node answers a comment that is neither in `nodes` nor in the thread.
    """
    fresh = _new_thread(name, title, url, now)
    fresh.state = state.value
    batch = _Batch(scheme, name, nodes, fresh)
    for node in nodes:
        if node.id not in batch.rows:
            batch.add(node)
    put: tuple[ndb.Model, ...] = tuple(batch.rows[row_id] for row_id in batch.changed)
    if batch.thread_changed:
        put = (*put, batch.thread)
    if not batch.added:
        return Imported((datastore.Writes(_OWNER, put=put),), 0)
    changes = batch.changes()
    first = next(node.id for node in nodes if node.id in batch.added)
    event = outbox.event_id(first, batch.rows[first].revision)
    writes = (
        datastore.Writes(_OWNER, put=put),
        batch.entry.writes(changes),
        outbox.tell(outbox.Kind.IMPORTED, event, changes, now=now),
    )
    return Imported(writes, len(batch.added), event)


class _Batch:
    """The rows an imported batch touches, by id, and which of them changed (in order)."""

    def __init__(
        self,
        scheme: sorthash.Scheme,
        name: records.ThreadName,
        nodes: Sequence[records.ImportedComment],
        fresh: models.Thread,
    ) -> None:
        self.scheme = scheme
        self.name = name
        ids = dict.fromkeys(node.id for node in nodes)
        ids.update(dict.fromkeys(node.reply_to for node in nodes if node.reply_to))
        self.entry = tallies.Entry(name, (node.author.id for node in nodes))
        thread, *rows = datastore.get_multi(
            [models.thread_key(name), *map(models.comment_key, ids), *self.entry.keys]
        )
        self.entry.fill(thread, rows[len(ids) :])
        del rows[len(ids) :]
        self.thread: models.Thread = thread or fresh
        self.thread_changed = thread is None
        self.rows: dict[str, models.Comment] = {row.key.id(): row for row in rows if row}
        self.changed: dict[str, None] = {}
        self.added: set[str] = set()
        # Of comments that were there: how they stood before this batch.
        self._before = {key: models.comment_state(row) for key, row in self.rows.items()}

    def add(self, node: records.ImportedComment) -> None:
        """Place one node that is not there yet."""
        answered = None if node.reply_to is None else self._row(node.reply_to)
        parent = answered
        if answered is not None and answered.level >= self.scheme.levels - 1:
            parent = self._above(answered)
        row = _new_row(
            Draft(
                id=node.id,
                name=self.name,
                reply_to=node.reply_to,
                author=node.author,
                text=Text(node.body, node.html, node.renderer),
                fingerprint=b"",
                created=node.created,
            ),
            reply_to=node.reply_to,
            status=node.status,
            source=node.source,
        )
        row.up, row.down, row.score = node.up, node.down, node.up - node.down
        _place(self.scheme, row, parent, self.thread)
        self.rows[node.id] = row
        self.changed[node.id] = None
        self.added.add(node.id)
        if parent is None:
            self.thread_changed = True
        else:
            self.changed[parent.key.id()] = None
        if row.listed:
            self._list_above(parent)

    def _row(self, comment_id: str) -> models.Comment:
        row = self.rows.get(comment_id) or datastore.get(models.comment_key(comment_id))
        if row is None or row.thread != models.thread_key_name(self.name):
            raise errors.NotFound("parent", comment_id)
        if comment_id not in self.rows:
            self._before[comment_id] = models.comment_state(row)
        self.rows[comment_id] = row
        found: models.Comment = row
        return found

    def _above(self, row: models.Comment) -> models.Comment | None:
        parent_id = models.parent_id(row)
        return None if parent_id is None else self._row(parent_id)

    def _list_above(self, parent: models.Comment | None) -> None:
        while parent is not None and not parent.listed:
            parent.listed = parent.unfolded = True
            parent.changed = _changed(parent)
            if parent.key.id() not in self.added:
                _touch(parent, was_listed=False)
            self.changed[parent.key.id()] = None
            parent = self._above(parent)

    def changes(self) -> list[Counted]:
        """Each changed row before and after, for the counters and the event."""
        return [
            Counted(self._before.get(row_id), models.comment_state(self.rows[row_id]))
            for row_id in self.changed
        ]


def folded(seen: Mapping[str, tuple[int, bool]]) -> datastore.Writes:
    """Clear the flags of comments that a directory holds, for `folding`.

    `seen` says at which revision it holds each, and whether listed. A comment that changed since
    keeps its flag.
    """
    rows = datastore.get_multi([models.comment_key(comment_id) for comment_id in seen])
    cleared = []
    for row, (revision, is_listed) in zip(rows, seen.values(), strict=True):
        if row is None or row.revision != revision or not row.unfolded:
            continue
        row.unfolded = row.rewrites = row.moved = False
        row.shelved = is_listed
        cleared.append(row)
    return datastore.Writes(_OWNER, put=tuple(cleared))


def unfold(ids: Sequence[str]) -> datastore.Writes:
    """Set the flags of comments that were stored without one and that readers see."""
    rows = datastore.get_multi([models.comment_key(comment_id) for comment_id in ids])
    unknown = [row for row in rows if row is not None and row.listed and not row.unfolded]
    for row in unknown:
        row.unfolded, row.changed = True, _changed(row)
    return datastore.Writes(_OWNER, put=tuple(unknown))


def mend(name: records.ThreadName, places: "Sequence[Place]") -> tuple[datastore.Writes, ...]:
    """Write rebuilt places and counters, for `repair`. Rows that changed meanwhile are left."""
    rows = datastore.get_multi([models.comment_key(place.id) for place in places])
    mended: list[ndb.Model] = []
    counted: list[Counted] = []
    for row, place in zip(rows, places, strict=True):
        unchanged = row is not None and (row.parent, row.number) == (place.was_below, place.was)
        if not unchanged or row.thread != models.thread_key_name(name):
            continue
        before = models.comment_state(row)
        # Buckets may hold it at the hash it had, or at any other before it was damaged.
        row.moved = row.moved or row.sort_hash != place.sort_hash
        was_listed = row.listed
        row.parent, row.number, row.level = place.parent, place.number, place.level
        row.sort_hash, row.slug, row.listed = place.sort_hash, place.slug, place.listed
        # Numbers are never reused, so a counter is raised and never lowered.
        row.child_count = max(row.child_count, place.child_count)
        _touch(row, was_listed=was_listed)
        mended.append(row)
        counted.append(Counted(before, models.comment_state(row)))
    return (datastore.Writes(_OWNER, put=tuple(mended)), tallies.entered(name, counted))


def refile(name: records.ThreadName, ids: Sequence[str], *, now: datetime) -> Refiled:
    """Count comments under the categories that their thread has now, for `filing`.

    Readers see nothing of it: no revision, and nothing to fold.
    """
    thread, *rows = datastore.get_multi(
        [models.thread_key(name), *(models.comment_key(comment_id) for comment_id in ids)]
    )
    changed: list[models.Comment] = []
    counted: list[Counted] = []
    for row in rows:
        is_here = row is not None and row.thread == thread.key.id()
        if not is_here or row.categories == thread.categories:
            continue
        before = models.comment_state(row)
        row.categories = list(thread.categories)
        changed.append(row)
        counted.append(Counted(before, models.comment_state(row)))
    if not changed:
        return Refiled((), 0)
    event = outbox.filing_id(changed[0].key.id(), thread.filed)
    writes = (
        datastore.Writes(_OWNER, put=tuple(changed)),
        outbox.tell(outbox.Kind.FILED, event, counted, now=now),
    )
    return Refiled(writes, len(changed), event)


def mend_thread(name: records.ThreadName, child_count: int) -> datastore.Writes:
    """Raise the thread's root counter to at least `child_count`, for `repair`."""
    thread = datastore.get(models.thread_key(name))
    if thread is None or thread.child_count >= child_count:
        return datastore.Writes(_OWNER)
    thread.child_count = child_count
    return datastore.Writes(_OWNER, put=(thread,))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a comment belongs by its links. `was_below` and `was` are its stored parent, number."""

    id: str
    was_below: str | None
    was: int
    parent: str | None
    number: int
    level: int
    sort_hash: str
    slug: str
    listed: bool
    child_count: int

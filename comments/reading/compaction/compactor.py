"""Compaction: taking changed rows into a thread's buckets, so that readers need not look at them.

Owns Bucket, BucketDirectory and Ranking, and the one place from which the flag `unfolded` is
cleared (`tree` writes the rows). One folding of a thread, in steps that each leave it readable:

1. **read** the directory, and by one query the rows whose flag stands;
2. **write** new buckets under keys of this attempt, which nobody names yet, each in a transaction
   that fails if somebody else switched since (`bucket_writer`);
3. **switch** the directory to them, in a transaction that fails if somebody else switched since,
   or if a bucket is gone that the new directory names;
4. wait until no process can use a directory from before the switch (`GRACE`, by our own clock,
   from the moment the switch was answered);
5. **clear**: delete the buckets that the directories before this one named, and what interrupted
   foldings left (`leftovers`); then clear the flag of each row that is still at the revision which
   was folded.

What must stay true: no step trusts another machine's clock; a bucket's key is never used twice;
until step 5 a reader finds every folded row in the delta too, so old directories lose nothing. A
crash in any step leaves rows flagged: the next folding finishes the work. **While a thread holds a
bucket that nobody names, one of its rows is flagged**, so somebody will come: such a bucket was
written before the switch of whoever folds next, who deletes it before clearing a flag. A bucket is
deleted by a transaction that reads what the directory names (or names for deletion), so none is
deleted that a switch takes in meanwhile.

A thread's first folding takes all its listed rows, also those of a release without the flag: those
are flagged first, and are then rows like all others. So does the folding that comes after `repair`
gave a row another hash: where the buckets hold such a row is not known. Until then readers take
the floor (`deltas.Row.moved`).

A changed row goes to the directory's tail, and from a full tail to new buckets (`bucket_layout`).
What was retracted or edited leaves its bucket at once.
"""

import functools
import math
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from comments.domain import records, sorthash
from comments.reading.compaction import bucket_layout, bucket_writer, due_threads, leftovers
from comments.reading.compaction.leftovers import delete_orphans
from comments.reading.materialized import (
    buckets,
    deltas,
    directories,
    first_page,
    merged_view,
    ranking,
    view_cache,
)
from comments.store import ownership, reads, transactions
from comments.store.models import bucket_rows, comment_rows
from comments.tree import job_writes, ordered_query

BUCKET_ROWS = 128  # of a new bucket
BUCKET_BYTES = 256 * 1024  # of a bucket's JSON before compression; Datastore takes 1 MiB
TAIL_ROWS = 256
TAIL_BYTES = 128 * 1024
GRACE = view_cache.CACHE_MAX_AGE + 5.0  # seconds from a switch to the clearing of its flags
MOST_CLEARING = 256  # rows that a directory lists although their flags are cleared
_OWNER = "compactor"


class Compacted(msgspec.Struct, frozen=True):
    """A directory that was switched to. `clear` it after `GRACE`.

    `left`: in how many seconds the rows that it left alone are to be folded; 0 if it took all.
    """

    name: records.ThreadName
    directory: buckets.Directory
    left: float = 0.0


class Prepared(msgspec.Struct, frozen=True):
    """New buckets that are written, and the directory that is to name them."""

    name: records.ThreadName
    base: buckets.Directory
    content: buckets.Content
    written: tuple[str, ...]
    token: str
    left: float = 0.0

    @property
    def is_change(self) -> bool:
        """Whether there is anything to switch to."""
        return self.content != self.base.content


def compact(
    scheme: sorthash.Scheme,
    name: records.ThreadName,
    *,
    now: datetime | None = None,
    only_due: bool = False,
) -> Compacted | None:
    """Take the changed rows of a thread into its directory. None if somebody else was faster.

    `only_due`: leave them alone if they are few and may wait.
    """
    prepared = prepare(scheme, name, now=now, only_due=only_due)
    return None if prepared is None else switch(prepared)


def prepare(
    scheme: sorthash.Scheme,
    name: records.ThreadName,
    *,
    now: datetime | None = None,
    only_due: bool = False,
) -> Prepared | None:
    """Write the new buckets. None if somebody else switched meanwhile.

    By `now`, else by this machine's clock, is counted how long cursors of rankings are good, and
    with `only_due` how long rows may wait.
    """
    now = now or datetime.now(UTC)
    stored = directories.load_directory(name)
    base, rows = stored, list(deltas.flagged(name))
    fresh = [row for row in rows if not base.holds(row.entry.id, row.entry.revision)]
    left = due_threads.left([row.fold_by for row in fresh], now) if only_due else 0.0
    if 0 < left < math.inf:
        return Prepared(name, stored, stored.content, (), "", left)
    if not stored.version or any(row.moved for row in fresh):
        base, fresh = buckets.Directory(""), _whole(name)
        rows = [row for row in fresh if row.flagged]
    attempt, about = bucket_writer.Attempt(scheme, name, base, stored.version), _about(name)
    if not fresh:
        content = msgspec.structs.replace(stored.content, about=about if stored.version else None)
        return Prepared(name, stored, content, (), attempt.token)
    try:
        lines, tail = attempt.shelve(
            bucket_layout.Sizes(BUCKET_ROWS, BUCKET_BYTES, TAIL_ROWS, TAIL_BYTES),
            deltas.merged(base, fresh),
            {row.entry.id for row in fresh if row.rewrites},
        )
        best = attempt.rank(buckets.Content(lines=lines, tail=tail), fresh)
    except directories.Gone:
        delete_orphans(name, attempt.written)
        return None
    kept = {line.key for line in lines}
    dead = [line.key for line in stored.lines if line.key not in kept]
    if stored.content.best is not None and (best is None or best.top != stored.content.best.top):
        dead.append(stored.content.best.top)
    if any(stored.holds(row.entry.id, row.entry.revision) for row in rows):
        dead += stored.content.dead  # nobody has cleared it yet
    content = buckets.Content(
        lines=lines,
        tail=tail,
        clearing=tuple(
            buckets.Clearing(row.entry.id, row.entry.revision, row.is_listed) for row in rows
        ),
        dead=tuple(dead),
        changed=(
            deltas.changed(stored.content, fresh) if stored.version else ordered_query.changed(name)
        ),
        best=best,
        about=about,
        replaced=_replaced(stored.content, best, now),
    )
    return Prepared(name, stored, content, tuple(attempt.written), attempt.token)


def _replaced(
    content: buckets.Content, best: buckets.Best | None, now: datetime
) -> tuple[buckets.Replaced, ...]:
    """The rankings that are kept for the cursors that name them."""
    kept = [each for each in content.replaced if each.until > now]
    if content.best is not None and (best is None or best.ranking != content.best.ranking):
        until = now + timedelta(seconds=ranking.KEPT + ranking.SKEW)
        kept.append(buckets.Replaced(content.best.ranking, until))
    return tuple(kept)


def switch(prepared: Prepared) -> Compacted | None:
    """Make the prepared directory the thread's, unless somebody was faster. None if so."""
    name, content = prepared.name, prepared.content
    if not prepared.is_change:
        return Compacted(name, prepared.base, prepared.left)
    first, *rest = bucket_layout.parts(buckets.encode_content(content))
    writer = bucket_writer.Writer(
        name, prepared.base.version, prepared.token, list(prepared.written)
    )
    directory = buckets.Directory(prepared.token, content)
    try:
        head = _head(name, directory)
        parts = [writer.write(part) for part in rest]
    except directories.Gone:
        delete_orphans(name, writer.written)
        return None
    key = bucket_rows.directory_key(name)
    row = bucket_rows.BucketDirectory(
        key=key,
        version=prepared.token,
        content=first,
        parts=parts,
        head=first_page.encode(head),
        due=leftovers.due(content.replaced),
    )
    expired = {each.ranking for each in prepared.base.content.replaced}
    expired -= {each.ranking for each in content.replaced}
    needed = [bucket_rows.bucket_key(name, each) for each in writer.written]
    if content.best is not None:
        needed.append(bucket_rows.ranking_key(name, content.best.ranking))

    def body() -> bool:
        stored, *written = reads.get_multi([key, *needed])
        found = "" if stored is None else stored.version
        if found == prepared.token:
            return True  # our own commit, whose answer was lost
        if found != prepared.base.version or None in written:
            return False
        # Who reads them just now reads the directory again.
        old = () if stored is None else stored.parts
        gone = [bucket_rows.bucket_key(name, each) for each in old]
        gone += [bucket_rows.ranking_key(name, each) for each in expired]
        transactions.apply(ownership.Writes(_OWNER, put=(row,), delete=tuple(gone)))
        return True

    if not transactions.transaction(body):
        # Not all at once: our switch may have been made, and another one upon it.
        delete_orphans(name, writer.written)
        return None
    return Compacted(name, directory)


def _head(name: records.ThreadName, directory: buckets.Directory) -> first_page.Head | None:
    """The first page as the directory shows it; it reads what holds that.

    Raises:
        directories.Gone: a bucket was replaced meanwhile.
    """
    content, load = directory.content, functools.partial(bucket_writer.every, name)
    return first_page.of(merged_view.View(directory, content.tail, load, changed=content.changed))


def clear(folded: Compacted, orphans: Sequence[str] = ()) -> None:
    """Delete what was replaced and clear the flags of what was folded, `GRACE` after its switch.

    `orphans` are what `sweep` found after the switch. The flags go last: while one stands, somebody
    who comes after a crash finds the thread, and with it all that is to be deleted.
    """
    content = folded.directory.content
    for keys in leftovers.in_parts(content.dead):
        transactions.transaction(functools.partial(leftovers.delete, folded.name, keys))
    delete_orphans(folded.name, orphans)
    is_long = len(content.clearing) > MOST_CLEARING
    first = len(content.clearing) - MOST_CLEARING if is_long else 0
    for part in leftovers.in_parts(content.clearing[:first]):
        transactions.transaction(functools.partial(_clear, part))
    if is_long:
        _forget_cleared(folded)
    for part in leftovers.in_parts(content.clearing[first:]):
        transactions.transaction(functools.partial(_clear, part))


def _forget_cleared(folded: Compacted) -> None:
    """Switch to a directory without the list of what was cleared.

    A short list goes with the next folding. That of a whole import would be read by everyone who
    opens the thread until then. Some flags still stand, see `clear`: this writes buckets too.
    """
    content = folded.directory.content
    flagged = {row.entry.id for row in deltas.flagged(folded.name)}
    left = tuple(each for each in content.clearing if each.id in flagged)
    slim = msgspec.structs.replace(content, clearing=left, dead=())
    token = secrets.token_hex(10)
    switch(Prepared(folded.name, folded.directory, slim, (), token))


def _clear(part: Sequence[buckets.Clearing]) -> None:
    seen = {each.id: (each.revision, each.is_listed) for each in part}
    transactions.apply(job_writes.compacted(seen))


def _whole(name: records.ThreadName) -> list[deltas.Row]:
    """All rows that are listed or flagged, those flagged first that no folding would find."""
    while True:
        rows = deltas.listed_or_flagged(name)
        strangers = [row.entry.id for row in rows if not (row.flagged or row.shelved)]
        if not strangers:
            return rows
        for part in leftovers.in_parts(strangers):
            transactions.transaction(functools.partial(_unfold, part))


def _unfold(ids: Sequence[str]) -> None:
    transactions.apply(job_writes.flag_unfolded(ids))


def _about(name: records.ThreadName) -> records.ThreadHeading | None:
    row = reads.get(comment_rows.thread_key(name))
    return None if row is None else records.ThreadHeading(row.title, row.url, row.named_by)

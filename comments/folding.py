"""Folding: taking changed rows into a thread's buckets, so that readers need not look at them.

Owns Bucket, BucketDirectory and Ranking, and the one place from which the flag `unfolded` is
cleared (`tree` writes the rows). One folding of a thread, in steps that each leave it readable:

1. **read** the directory, and by one query the rows whose flag stands;
2. **write** new buckets under keys of this attempt, which nobody names yet, each in a transaction
   that fails if somebody else switched since;
3. **switch** the directory to them, in a transaction that fails if somebody else switched since,
   or if a bucket is gone that the new directory names;
4. wait until no process can use a directory from before the switch (`GRACE`, by our own clock,
   from the moment the switch was answered);
5. **clear**: delete the buckets that the directories before this one named, and what interrupted
   foldings left; then clear the flag of each row that is still at the revision which was folded.

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
the floor (`materialized.Row.moved`).

A changed row goes to the directory's tail, and from a full tail to new buckets (`shelves`). What
was retracted or edited leaves its bucket at once.
"""

import dataclasses
import functools
import secrets
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from comments import (
    buckets,
    datastore,
    floor,
    heads,
    materialized,
    models,
    ranking,
    records,
    shelves,
    sorthash,
    tree,
    views,
)

T = TypeVar("T")

BUCKET_ROWS = 128  # of a new bucket
BUCKET_BYTES = 256 * 1024  # of a bucket's JSON before compression; Datastore takes 1 MiB
TAIL_ROWS = 256
TAIL_BYTES = 128 * 1024
GRACE = materialized.CACHE_MAX_AGE + 5.0  # seconds from a switch to the clearing of its flags
MOST_CLEARING = 256  # rows that a directory lists although their flags are cleared
_AT_ONCE = 100  # rows or buckets in one transaction
_OWNER = "folding"
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclasses.dataclass(frozen=True, slots=True)
class Folded:
    """A directory that was switched to. `clear` it after `GRACE`."""

    name: records.ThreadName
    directory: buckets.Directory


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """New buckets that are written, and the directory that is to name them."""

    name: records.ThreadName
    base: buckets.Directory
    content: buckets.Content
    written: tuple[str, ...]
    token: str

    @property
    def is_change(self) -> bool:
        """Whether there is anything to switch to."""
        return self.content != self.base.content


def fold(
    scheme: sorthash.Scheme, name: records.ThreadName, *, now: datetime | None = None
) -> Folded | None:
    """Take the changed rows of a thread into its directory. None if somebody else was faster."""
    prepared = prepare(scheme, name, now=now)
    return None if prepared is None else switch(prepared)


def prepare(
    scheme: sorthash.Scheme, name: records.ThreadName, *, now: datetime | None = None
) -> Prepared | None:
    """Write the new buckets. None if somebody else switched meanwhile.

    By `now`, else by this machine's clock, is counted how long cursors of rankings are good.
    """
    stored = materialized.load_directory(name)
    base, rows = stored, list(materialized.flagged(name))
    fresh = [row for row in rows if not base.holds(row.entry.id, row.entry.revision)]
    if not stored.version or any(row.moved for row in fresh):
        base, fresh = buckets.Directory(""), _whole(name)
        rows = [row for row in fresh if row.flagged]
    attempt, about = _Attempt(scheme, name, base, stored.version), _about(name)
    if not fresh:
        content = msgspec.structs.replace(stored.content, about=about if stored.version else None)
        return Prepared(name, stored, content, (), attempt.token)
    try:
        lines, tail = attempt.shelve(
            materialized.merged(base, fresh),
            {row.entry.id for row in fresh if row.rewrites},
        )
        best = attempt.rank(buckets.Content(lines=lines, tail=tail), fresh)
    except materialized.Gone:
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
            materialized.changed(stored.content, fresh) if stored.version else floor.changed(name)
        ),
        best=best,
        about=about,
        replaced=_replaced(stored.content, best, now or datetime.now(UTC)),
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


def switch(prepared: Prepared) -> Folded | None:
    """Make the prepared directory the thread's, unless somebody was faster. None if so."""
    name, content = prepared.name, prepared.content
    if not prepared.is_change:
        return Folded(name, prepared.base)
    first, *rest = shelves.parts(buckets.encode_content(content))
    writer = _Writer(name, prepared.base.version, prepared.token, list(prepared.written))
    directory = buckets.Directory(prepared.token, content)
    try:
        head = _head(name, directory)
        parts = [writer.write(part) for part in rest]
    except materialized.Gone:
        delete_orphans(name, writer.written)
        return None
    key = models.directory_key(name)
    row = models.BucketDirectory(
        key=key,
        version=prepared.token,
        content=first,
        parts=parts,
        head=heads.encode(head),
        due=_due(content.replaced),
    )
    expired = {each.ranking for each in prepared.base.content.replaced}
    expired -= {each.ranking for each in content.replaced}
    needed = [models.bucket_key(name, each) for each in writer.written]
    if content.best is not None:
        needed.append(models.ranking_key(name, content.best.ranking))

    def body() -> bool:
        stored, *written = datastore.get_multi([key, *needed])
        found = "" if stored is None else stored.version
        if found == prepared.token:
            return True  # our own commit, whose answer was lost
        if found != prepared.base.version or None in written:
            return False
        # Who reads them just now reads the directory again.
        old = () if stored is None else stored.parts
        gone = [models.bucket_key(name, each) for each in old]
        gone += [models.ranking_key(name, each) for each in expired]
        datastore.apply(datastore.Writes(_OWNER, put=(row,), delete=tuple(gone)))
        return True

    if not datastore.transaction(body):
        # Not all at once: our switch may have been made, and another one upon it.
        delete_orphans(name, writer.written)
        return None
    return Folded(name, directory)


def _head(name: records.ThreadName, directory: buckets.Directory) -> heads.Head | None:
    """The first page as the directory shows it; it reads what holds that.

    Raises:
        materialized.Gone: a bucket was replaced meanwhile.
    """
    content, load = directory.content, functools.partial(_all, name)
    return heads.of(views.View(directory, content.tail, load, changed=content.changed))


def clear(folded: Folded, orphans: Sequence[str] = ()) -> None:
    """Delete what was replaced and clear the flags of what was folded, `GRACE` after its switch.

    `orphans` are what `sweep` found after the switch. The flags go last: while one stands, somebody
    who comes after a crash finds the thread, and with it all that is to be deleted.
    """
    content = folded.directory.content
    for keys in _in_parts(content.dead):
        datastore.transaction(functools.partial(_delete, folded.name, keys))
    delete_orphans(folded.name, orphans)
    is_long = len(content.clearing) > MOST_CLEARING
    first = len(content.clearing) - MOST_CLEARING if is_long else 0
    for part in _in_parts(content.clearing[:first]):
        datastore.transaction(functools.partial(_clear, part))
    if is_long:
        _forget_cleared(folded)
    for part in _in_parts(content.clearing[first:]):
        datastore.transaction(functools.partial(_clear, part))


def _forget_cleared(folded: Folded) -> None:
    """Switch to a directory without the list of what was cleared.

    A short list goes with the next folding. That of a whole import would be read by everyone who
    opens the thread until then. Some flags still stand, see `clear`: this writes buckets too.
    """
    content = folded.directory.content
    flagged = {row.entry.id for row in materialized.flagged(folded.name)}
    left = tuple(each for each in content.clearing if each.id in flagged)
    slim = msgspec.structs.replace(content, clearing=left, dead=())
    token = secrets.token_hex(10)
    switch(Prepared(folded.name, folded.directory, slim, (), token))


def sweep(name: records.ThreadName) -> list[str]:
    """What no directory names: the keys of buckets, and of rankings, which have no "-".

    Give them to `delete_orphans` after `GRACE`.
    """
    ancestor = models.thread_key(name)
    stored = [
        message.key.path[-1].name
        for kind in ("Bucket", "Ranking")
        for message in datastore.fetch(datastore.Query(kind, ancestor=ancestor, keys_only=True))
    ]
    named = _named(name) if stored else set()
    return [key for key in stored if key not in named]


def delete_orphans(name: records.ThreadName, found: Sequence[str]) -> None:
    """Delete those that no directory names by now."""

    def body(part: Sequence[str]) -> None:
        named = _named(name)
        _delete(name, [key for key in part if key not in named])

    for part in _in_parts(found):
        datastore.transaction(functools.partial(body, part))


def _named(name: records.ThreadName) -> set[str]:
    """The buckets and rankings that a thread's directory names, and those that it is to delete."""
    content = materialized.load_directory(name).content
    named = {line.key for line in content.lines}.union(each.ranking for each in content.replaced)
    if content.best is not None:
        named |= {content.best.top, content.best.ranking}
    return named.union(content.dead, materialized.parts_of(name))


def expire(now: datetime) -> int:
    """Delete the rankings whose cursors have expired by `now`; how many there were.

    This is for threads that nobody changes any more: the others' go with their foldings.
    """
    # Between two bounds: a directory that waits for nothing has null there, below all moments.
    query = datastore.Query(
        "BucketDirectory", where=(("due", ">", _NEVER), ("due", "<=", now)), keys_only=True
    )
    threads = [message.key.path[0].name for message in datastore.fetch(query)]
    return sum(datastore.transaction(functools.partial(_expire, thread, now)) for thread in threads)


def _expire(thread: str, now: datetime) -> int:
    row = datastore.get(models.thread_key_of(thread))
    if row is None:
        return 0
    name = models.thread_record(row).name
    stored = datastore.get(models.directory_key(name))
    replaced = materialized.load_directory(name).content.replaced
    gone = [each for each in replaced if each.until <= now]
    if stored is None or not gone:
        return 0
    # Only the moment changes, which is no reader's matter: the version stays. The next folding
    # shortens the list.
    stored.due = _due(each for each in replaced if each.until > now)
    keys = tuple(models.ranking_key(name, each.ranking) for each in gone)
    datastore.apply(datastore.Writes(_OWNER, put=(stored,), delete=keys))
    return len(gone)


def _due(replaced: Iterable[buckets.Replaced]) -> datetime | None:
    return min((each.until for each in replaced), default=None)


def _in_parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[first : first + _AT_ONCE] for first in range(0, len(items), _AT_ONCE))


def _clear(part: Sequence[buckets.Clearing]) -> None:
    seen = {each.id: (each.revision, each.is_listed) for each in part}
    datastore.apply(tree.folded(seen))


def _delete(name: records.ThreadName, keys: Sequence[str]) -> None:
    gone = tuple(
        models.bucket_key(name, key) if "-" in key else models.ranking_key(name, key)
        for key in keys
    )
    datastore.apply(datastore.Writes(_OWNER, delete=gone))


def _whole(name: records.ThreadName) -> list[materialized.Row]:
    """All rows that are listed or flagged, those flagged first that no folding would find."""
    while True:
        rows = materialized.listed_or_flagged(name)
        strangers = [row.entry.id for row in rows if not (row.flagged or row.shelved)]
        if not strangers:
            return rows
        for part in _in_parts(strangers):
            datastore.transaction(functools.partial(_unfold, part))


def _unfold(ids: Sequence[str]) -> None:
    datastore.apply(tree.unfold(ids))


def _about(name: records.ThreadName) -> buckets.About | None:
    row = datastore.get(models.thread_key(name))
    return None if row is None else buckets.About(row.title, row.url)


class _Writer:
    """Writes the buckets of one attempt, whose token is in every key, upon one directory."""

    def __init__(
        self, name: records.ThreadName, version: str, token: str, written: list[str]
    ) -> None:
        self._name = name
        self._version = version
        self.token = token
        self.written = written

    def write(self, content: bytes) -> str:
        """Write a bucket; returns its key.

        Raises:
            materialized.Gone: somebody else switched meanwhile.
        """
        key = f"{self.token}-{len(self.written)}"
        self.store(models.Bucket(key=models.bucket_key(self._name, key), content=content))
        self.written.append(key)
        return key

    def store(self, row: models.Bucket | models.Ranking) -> None:
        """Write an entity of the attempt while its directory is the thread's.

        One who was stopped would otherwise write a text that was erased meanwhile, after everybody
        has looked for such buckets and left.
        """

        def body() -> None:
            stored = datastore.get(models.directory_key(self._name))
            if self._version != ("" if stored is None else stored.version):
                raise materialized.Gone
            datastore.apply(datastore.Writes(_OWNER, put=(row,)))

        datastore.transaction(body)


class _Attempt(_Writer):
    """One attempt to fold a thread."""

    def __init__(
        self,
        scheme: sorthash.Scheme,
        name: records.ThreadName,
        base: buckets.Directory,
        version: str,
    ) -> None:
        super().__init__(name, version, secrets.token_hex(10), [])
        self._scheme = scheme
        self._base = base

    def shelve(
        self, marks: Sequence[buckets.Mark], urgent: set[str]
    ) -> tuple[tuple[buckets.Line, ...], tuple[buckets.Mark, ...]]:
        """Write the buckets that are worth it; the lines and the tail that come of it.

        Raises:
            materialized.Gone: a bucket was replaced meanwhile.
        """
        sizes = shelves.Sizes(BUCKET_ROWS, BUCKET_BYTES, TAIL_ROWS, TAIL_BYTES)
        by_line: dict[int, list[buckets.Mark]] = {}
        for mark in marks:
            by_line.setdefault(self._base.line_of(mark.sort_hash), []).append(mark)
        chosen = set(shelves.worth_a_write(sizes, by_line, urgent))
        lines: list[buckets.Line] = []
        for place, line in enumerate(self._base.lines):
            if place in chosen:
                previous = lines[-1].last if lines else ""
                lines += self._replaced(sizes, line, by_line[place], previous)
            else:
                lines.append(line)
        if -1 in chosen:  # there are no buckets yet
            lines += self._replaced(sizes, None, by_line[-1], "")
        tail = [
            mark
            for place, group in by_line.items()
            if place not in chosen
            for mark in group
            if mark.json or mark.held
        ]
        return tuple(lines), tuple(tail)

    def rank(
        self, content: buckets.Content, fresh: Sequence[materialized.Row]
    ) -> buckets.Best | None:
        """Write the ranking and its first rows, where the changes touch them.

        Raises:
            materialized.Gone: a bucket was replaced meanwhile.
        """
        scheme, best = self._scheme, self._base.content.best
        known = (
            None
            if best is None
            else materialized.load_ranking(self._name, best.ranking, is_newest=True)
        )
        hashes = {row.entry.sort_hash: row.votes for row in fresh}
        votes = {each: hashes[each] for each in hashes if buckets.root_of(scheme, each) == each}
        ranked = ranking.updated(known or ranking.Ranking(), votes)
        if not ranked.ranked:
            return None
        if best is not None and ranked == known:
            if not ranking.is_shown(scheme, materialized.load_top(self._name, best.top), hashes):
                return best
            key = best.ranking
        else:
            key = self._write_ranking(ranked)
        directory = buckets.Directory(self.token, content)
        view = views.View(directory, content.tail, functools.partial(_all, self._name))
        return buckets.Best(key, self.write(ranking.encode_top(ranking.top(view, scheme, ranked))))

    def _write_ranking(self, ranked: ranking.Ranking) -> str:
        key = models.ranking_key(self._name, self.token)
        self.store(models.Ranking(key=key, content=ranking.encode(ranked)))
        return self.token

    def _replaced(
        self,
        sizes: shelves.Sizes,
        line: buckets.Line | None,
        marks: Sequence[buckets.Mark],
        previous: str,
    ) -> Iterator[buckets.Line]:
        entries = {}
        if line is not None:
            (bucket,) = materialized.load_buckets(self._name, [line.key])
            if bucket is None:
                raise materialized.Gone
            entries = {entry.id: entry for entry in bucket.entries}
        for mark in marks:
            entries.pop(mark.id, None)
            if mark.json:
                entries[mark.id] = mark.entry
        for run in shelves.runs(sizes, sorted(entries.values(), key=lambda entry: entry.sort_hash)):
            yield buckets.line(self._scheme, self.write(buckets.encode_bucket(run)), run, previous)
            previous = run[-1].sort_hash


def _all(name: records.ThreadName, keys: Sequence[str]) -> list[buckets.Bucket]:
    """Read buckets that must be there."""
    found = [bucket for bucket in materialized.load_buckets(name, keys) if bucket is not None]
    if len(found) < len(keys):
        raise materialized.Gone
    return found

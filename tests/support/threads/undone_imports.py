"""Import small exports, undo the imports, and compare what is stored with what people added.

An export is a file with one JSON item on each line: a thread or a comment of `import_source`.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from comments.domain import presentation, records
from comments.domain.ids import sorthash
from comments.events import audit_log, dispatcher
from comments.reading.compaction import compactor, due_threads, leftovers
from comments.reading.materialized import thread_view, view_cache
from comments.store import connection, reads
from comments.store.memory import per_process
from comments.transfer import import_source
from comments.transfer.importing import import_journal, import_undo, import_writer
from comments.tree.lists import ordered_query
from comments.upkeep import wiring
from comments.upkeep.integrity import recount, repair
from tests.support import stored_state
from tests.support.histories import counter_oracle
from tests.support.threads import compaction, sample_exports, sample_threads, sample_votes

SITE = "garden"
SCHEME = sorthash.Scheme(levels=3)
NOW = sample_threads.START + timedelta(days=1)
ROSES = "garden.example/roses"
TULIPS = "garden.example/tulips"
# The properties of a comment that compactions and changes of other comments change.
_PASSING = (
    "revision", "text_revision", "unfolded", "fold_by", "shelved", "rewrites", "moved", "changed",
    "child_count",
)  # fmt: skip
# The kinds whose rows are made from comments or record an operator's work.
_MADE = {
    "Bucket", "BucketDirectory", "Ranking", "Job", "ImportBatch", "AuditEntry",
    "Counter", "Participation", "Standing", "Day", "Month", "Category", "Appearance", "RateBucket",
}  # fmt: skip


def comment(
    comment_id: str, parent: str | None = None, page: str = "roses", **more: Any
) -> import_source.SourceComment:
    """Return a comment of an export; ids are numbers, and later ids are of later comments."""
    given: dict[str, Any] = {
        "status": records.Status.APPROVED,
        "created": sample_exports.NOW - timedelta(days=9) + timedelta(minutes=int(comment_id)),
        "name": f"Author {int(comment_id) % 3}",
        "body": f"imported {comment_id}",
    }
    return import_source.SourceComment(
        system="disqus", id=comment_id, line=1, thread=page, parent=parent, **(given | more)
    )


EXPORT = [
    comment("1", email="ada@mail.example", website="https://ada.example", up=3, pinned=True),
    comment("2", "1", edited=NOW - timedelta(days=3)),
    comment("3", "2"),
    comment("4", "2"),
    comment("5", "1", status=records.Status.SPAM),
    comment("6", status=records.Status.PENDING),
    comment("7", status=records.Status.RETRACTED),
    comment("8", "7", down=2),
    comment("9", page="tulips"),
    comment("10", "9", page="tulips"),
    comment("11", page="lilies", status=records.Status.SPAM),
]


def saved(path: Path, comments: Sequence[import_source.SourceComment], **pages: Any) -> Path:
    """Write an export. `pages` contains the properties of its pages that differ from defaults."""
    names = dict.fromkeys(each.thread for each in comments)
    threads = [
        import_source.SourceThread(
            key=name, line=1, link=f"https://garden.example/{name}", **pages.get(name, {})
        )
        for name in names
    ]
    lines = [msgspec.json.encode(each) for each in (*threads, *comments)]
    path.write_bytes(b"\n".join(lines))
    return path


def read(path: Path) -> Iterator[import_source.Item]:
    for line in path.read_bytes().splitlines():
        if b'"link":' in line:
            yield msgspec.json.decode(line, type=import_source.SourceThread)
        else:
            yield msgspec.json.decode(line, type=import_source.SourceComment)


def brought(path: Path, now: datetime = NOW) -> import_journal.Import:
    """Import a file, deliver its events, and return the import."""
    site = records.Site(
        SITE, ("https://garden.example",), SCHEME.digits, SCHEME.width, levels=SCHEME.levels
    )
    with sample_exports.planned_by(read, path, levels=SCHEME.levels, site=site) as plan:
        import_writer.write(plan, scheme=SCHEME, now=now, clock=lambda: now)
    deliver()
    return next(each for each in import_journal.recent_imports(SITE) if not each.undone)


def deliver() -> None:
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)


def begin(found: import_journal.Import, now: datetime = NOW) -> None:
    act = audit_log.Act(sample_threads.ADA, import_undo.VERB)
    import_undo.begin(SITE, found.id, act, now=now)


def finish(found: import_journal.Import, now: datetime = NOW) -> import_journal.Import:
    """Finish an undo that has begun, with the compactions that it needs."""
    for _ in range(4):
        done = import_undo.go_on(SITE, found.id, now=now)
        deliver()
        if done.found.undone:
            return done.found
        settle()
    raise AssertionError(done)


def undo(found: import_journal.Import, now: datetime = NOW) -> import_journal.Import:
    begin(found, now)
    return finish(found, now)


class Clock:
    """The clock of a process's caches; a compaction's grace period passes at once."""

    def __init__(self, store: connection.Store) -> None:
        self.now = 0.0
        view_cache.HOLDINGS.put(store, view_cache.Holdings(lambda: self.now))

    @staticmethod
    def current() -> "Clock":
        return CLOCKS.of(connection.current(), lambda: Clock(connection.current()))


CLOCKS = per_process.PerProcess[Clock]()


def settle() -> None:
    """Count votes, compact each thread, clear its flags, and deliver all events."""
    sample_votes.count_waiting(NOW + timedelta(days=1))
    for name in due_threads.find(NOW + timedelta(days=9)):
        folded = compactor.compact(SCHEME, name)
        assert folded is not None
        orphans = leftovers.orphans(name)
        Clock.current().now += compactor.GRACE
        compactor.clear(folded, orphans)
    deliver()


def threads() -> list[records.ThreadName]:
    return [records.ThreadName(SITE, _text(each, "thread")) for each in stored_state.rows("Thread")]


def assert_sound() -> None:
    """Check that a recount and a repair find nothing, and that pages equal the ordered query."""
    assert recount.site(SITE, tell=print, fixes=False) == 0
    for name in threads():
        assert repair.find_problems(SCHEME, name) == []
        assert_readable(name)


def assert_readable(name: records.ThreadName) -> None:
    """Check that the merged view of a thread, if there is one, equals the ordered query."""
    rows = list(ordered_query.thread(name))
    try:
        shown = compaction.with_view(name, lambda view: [each.json for each in view.rows()])
    except view_cache.NotMaterialized:
        return
    assert shown == [presentation.fragment(row) for row in rows]
    view = thread_view.view(name)
    assert (view.total, view.changed) == (len(rows), ordered_query.last_change(name))


def plain() -> dict[str, dict[str, str]]:
    """Return the rows that people and imports added, by kind and key, without passing values."""
    found = {}
    for kind in stored_state.kind_names():
        if kind in _MADE:
            continue
        for row in stored_state.rows(kind):
            key = "/".join(f"{each.kind}:{each.name}" for each in row.key.path)
            values = {name: f"{value}" for name, value in row.properties.items()}
            for name in _PASSING if kind == "Comment" else ("child_count", "shards"):
                values.pop(name, None)
            found[key] = values
    return found


def addresses() -> list[str]:
    return [_text(each, "author_email") for each in stored_state.rows("Comment")]


def bodies() -> dict[str, str]:
    """Return the text of each stored comment by its id."""
    return {each.key.path[-1].name: _text(each, "body") for each in stored_state.rows("Comment")}


def ids() -> dict[str, str]:
    """Return the ids of the stored comments of `EXPORT` by their numbers."""
    return {
        text.removeprefix("imported "): key
        for key, text in bodies().items()
        if text.startswith("imported ")
    }


def post(
    site: records.Site, text: str, parent: str | None = None, thread: str = ROSES
) -> records.Comment:
    """Post a comment of a person into a thread."""
    return sample_threads.post(
        site, text, parent, thread=thread, now=NOW, author=sample_threads.author("bob")
    )


def _text(message: Any, name: str) -> str:
    text: str = message.properties[name].string_value
    return text


def batches() -> int:
    return reads.count(reads.Query("ImportBatch"))

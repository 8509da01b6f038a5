"""Store the data that `large_figures` measures: one huge thread, or a site with many threads.

    python -m benchmarks.scaling.large_data million FOLDER [--comments 1000000]
    python -m benchmarks.scaling.large_data threads FOLDER [--threads 100000]

Posting a million comments would take hours, so both commands use the engine's bulk load. `million`
stores copies of one imported row with positions computed by `sorthash` (`threads.loading`).
`threads` imports, compacts and counts one thread of three comments through the product, and stores
copies of all its rows: thread, comments, counter, directory and participations. In a copy, every id
is replaced by one of the same length, also in compressed contents.

The folder gets the data file and `loaded.json`, which has the number of comments and threads, the
processor time, and the seconds of the first compaction.
"""

import argparse
import hashlib
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.serving import gunicorn_process
from benchmarks.threads import conversations, loading, shapes
from comments.domain import records
from comments.jobs.integrity import recount
from comments.reading.compaction import compactor
from comments.reading.materialized import buckets, first_page, merged_view
from comments.sites import site_settings
from comments.store import connection
from comments.store.models import comment_rows
from emulator import inprocess, protobufs

SITE = "bench"
MILLION = "million"
SMALL: shapes.Shape = [None, 0, None]  # The shape of each thread of the large site.
LOADED = "loaded.json"
_NOT_COPIED = frozenset({"Site", "Event"})


class Loaded(msgspec.Struct):
    """A stored data set. `seconds` is the processor time of the whole command."""

    comments: int
    threads: int
    seconds: float


def thread_name(number: int) -> records.ThreadName:
    """Return a thread of the large site. All names have the same length."""
    return records.ThreadName(SITE, f"page-{number:06d}")


def store_million(data: Path, comments: int) -> Loaded:
    """Store, compact and count one thread."""
    with _opened(data) as engine, _store(engine).context():
        _add_site()
        name = records.ThreadName(SITE, MILLION)
        thread = conversations.thread(shapes.grown(comments))
        loading.add_thread(engine, name, thread, is_folded=True)
        recount.thread(name, tell=lambda _number: None, fixes=True)
    return _loaded(data, comments, 1)


def store_threads(data: Path, threads: int) -> Loaded:
    """Store a site with many small threads."""
    with _opened(data) as engine, _store(engine).context():
        _add_site()
        said = conversations.thread(SMALL)
        loading.store_imported(said, thread_name(0))
        folded = compactor.compact(loading.SCHEME, thread_name(0))
        if folded is not None:
            compactor.clear(folded)
        recount.thread(thread_name(0), tell=lambda _number: None, fixes=True)
        rows = [row for row in _rows(engine) if row.key.path[0].kind not in _NOT_COPIED]
        ids = [each.id for each in said]
        copies = (
            copy
            for number in range(1, threads)
            for copy in _copied(rows, _replacements(ids, number))
        )
        engine.load(copies, loading.PROJECT)
    return _loaded(data, threads * len(SMALL), threads)


def _opened(data: Path) -> inprocess.Engine:
    data.mkdir(parents=True)
    return inprocess.open_engine(
        data / "flatthread.db",
        indexes=gunicorn_process.ROOT / "index.yaml",
        durability="fast",  # Only while filling the store.
        concurrency="pessimistic",
        history=0,
    )


def _store(engine: inprocess.Engine) -> connection.Store:
    return connection.Store(inprocess.Channel(engine), project=loading.PROJECT, deadline=3600.0)


def _add_site() -> None:
    site_settings.add(SITE, ["http://localhost"], scheme=loading.SCHEME, now=conversations.START)


def _loaded(data: Path, comments: int, threads: int) -> Loaded:
    loaded = Loaded(comments, threads, time.process_time())
    (data / LOADED).write_bytes(msgspec.json.encode(loaded))
    return loaded


def _rows(engine: inprocess.Engine) -> list[protobufs.Entity]:
    request = protobufs.RunQueryRequest(project_id=loading.PROJECT)
    answer = protobufs.RunQueryResponse.FromString(engine.call("RunQuery", request))
    return [found.entity for found in answer.batch.entity_results]


def _replacements(ids: Sequence[str], number: int) -> dict[bytes, bytes]:
    """Map the names in the first thread's rows to those of a copy."""
    new = {
        each: comment_rows.comment_id(hashlib.sha256(f"{number} {each}".encode()).digest())
        for each in ids
    }
    new[thread_name(0).id] = thread_name(number).id
    return {old.encode(): name.encode() for old, name in new.items()}


def _copied(
    rows: Sequence[protobufs.Entity], names: Mapping[bytes, bytes]
) -> Iterator[protobufs.Entity]:
    for row in rows:
        copy = protobufs.Entity.FromString(_replaced(row.SerializeToString(), names))
        if "content" in copy.properties:
            stored = copy.properties["content"]
            plain = zlib.decompress(stored.blob_value)
            stored.blob_value = zlib.compress(_replaced(plain, names))
            _tag(copy)
        yield copy


def _tag(row: protobufs.Entity) -> None:
    """Give a copied directory's first page the tag of the copied comments."""
    content = buckets.decode_content(row.properties["content"].blob_value)
    head = first_page.decode(row.properties["head"].blob_value)
    if head is None:
        raise SystemExit("the first thread was stored without its first page")
    directory = buckets.Directory(row.properties["version"].string_value, content)
    view = merged_view.View(directory, content.tail, lambda _lines: [], changed=content.changed)
    tagged = msgspec.structs.replace(head, tag=view.tag)
    row.properties["head"].blob_value = first_page.encode(tagged)


def _replaced(data: bytes, names: Mapping[bytes, bytes]) -> bytes:
    for old, new in names.items():
        data = data.replace(old, new)
    return data


def main(arguments: Sequence[str] | None = None) -> None:
    """Store one of the data sets."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=("million", "threads"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--comments", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=100_000)
    chosen = parser.parse_args(arguments)
    if chosen.folder.exists():
        parser.error(f"{chosen.folder} exists already; name a new folder")
    if chosen.kind == "million":
        loaded = store_million(chosen.folder, chosen.comments)
    else:
        loaded = store_threads(chosen.folder, chosen.threads)
    print(f"{loaded.comments:,} comments in {loaded.threads:,} threads: {loaded.seconds:.0f} s")


if __name__ == "__main__":
    main()

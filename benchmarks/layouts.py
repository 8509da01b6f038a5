"""Measure the first page of 50 comments in six layouts of a thread, and draw README's plot.

The layouts (docs/ideas/three-layouts.md) store the same threads on the same engine, each in a file
of its own, and take turns. The classic ones use raw protobuf messages without an object mapper.
"""

import contextlib
import dataclasses
import itertools
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import first_page_plot, measuring
from benchmarks.threads import conversations, loading, shapes
from benchmarks.threads.conversations import Said
from comments.reading import listings, thread_pages
from comments.store import connection, reads
from datastore_emulator import protobufs

PAGE = 50
THREAD = "page"
BUCKET = 100  # The number of comments in a bucket.
SIZES, QUICK_SIZES = (100, 1_000, 10_000, 100_000), (100, 1_000)
_TEXTS = ("author_name", "author_website", "author_email", "author_id", "body", "html")
_INDEXES = """
indexes:
- {kind: Path, properties: [{name: thread}, {name: path}]}
- {kind: Link, properties: [{name: thread}, {name: parent}, {name: created}]}
"""
Packed = list[tuple[int, Said]]  # Levels and comments in reading order.


class Public(msgspec.Struct, frozen=True):
    """A comment in the form that readers receive."""

    id: str
    parent: str | None
    level: int
    html: str
    author: dict[str, str]
    created: datetime
    score: int
    status: str
    revision: int


def fragment(said: Said, level: int) -> bytes:
    """Return the JSON of a comment as the API sends it."""
    author = {"name": said.author_name, "website": said.author_website}
    public = Public(
        said.id, said.parent, level, said.html, author, said.created, said.score, said.status,
        said.revision,
    )  # fmt: skip
    return msgspec.json.encode(public)


def in_order(thread: Sequence[Said]) -> Packed:
    """Return the comments in reading order with their levels."""
    levels: dict[str | None, int] = {None: -1}
    for said in thread:
        levels[said.id] = levels[said.parent] + 1
    found = {said.id: said for said in thread}
    return [(levels[each], found[each]) for each in conversations.walk(thread)]


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """A classic layout: the entities of a thread, and the first page of the current store."""

    entities: Callable[[Sequence[Said]], Iterator[protobufs.Entity]]
    page: Callable[[], list[bytes]]


def _entity(kind: str, name: str) -> protobufs.Entity:
    entity = protobufs.Entity()
    entity.key.partition_id.project_id = loading.PROJECT
    entity.key.path.add(kind=kind, name=name)
    return entity


def _row(kind: str, said: Said, indexed: dict[str, str]) -> protobufs.Entity:
    """Return the entity of one comment; only the queried properties are indexed."""
    entity = _entity(kind, said.id)
    values = entity.properties
    for name in (*_TEXTS, "status"):
        values[name].string_value = getattr(said, name)
    values["parent"].string_value = said.parent or ""
    values["created"].timestamp_value.FromDatetime(said.created)
    values["score"].integer_value = said.score
    values["revision"].integer_value = said.revision
    for value in values.values():
        value.exclude_from_indexes = True
    for name, text in indexed.items():
        values[name].string_value = text
        values[name].exclude_from_indexes = False
    return entity


def _said(entity: protobufs.Entity) -> Said:
    values = entity.properties
    return Said(
        entity.key.path[-1].name,
        values["parent"].string_value or None,
        *(values[name].string_value for name in _TEXTS),
        values["created"].timestamp_value.ToDatetime(),
        score=values["score"].integer_value,
        revision=values["revision"].integer_value,
    )


def _paths(thread: Sequence[Said]) -> Iterator[protobufs.Entity]:
    """Yield an entity for each comment, ordered by a path of its ancestors' times and slugs."""
    paths: dict[str, str] = {}
    for said in thread:
        own = f"{said.created:%Y.%m.%d.%H.%M.%S}:{said.id[:4]}"
        paths[said.id] = own if said.parent is None else f"{paths[said.parent]}/{own}"
        yield _row("Path", said, {"thread": THREAD, "path": paths[said.id]})


def _page_of_paths() -> list[bytes]:
    query = reads.Query("Path", (("thread", "=", THREAD),), ("path",), limit=PAGE)
    return [
        fragment(_said(entity), entity.properties["path"].string_value.count("/"))
        for entity in reads.fetch(query)
    ]


def _links(thread: Sequence[Said]) -> Iterator[protobufs.Entity]:
    """Yield an entity for each comment, with its parent's id."""
    for said in thread:
        entity = _row("Link", said, {"thread": THREAD, "parent": said.parent or ""})
        entity.properties["created"].exclude_from_indexes = False
        yield entity


def _page_of_links() -> list[bytes]:
    return [fragment(*each) for each in itertools.islice(_walk_of_links(), PAGE)]


def _walk_of_links() -> Iterator[tuple[Said, int]]:
    """Yield comments in reading order, with a query for each comment's children."""
    open_ = [_children("")]
    while open_:
        said = next(open_[-1], None)
        if said is None:
            open_.pop()
            continue
        yield said, len(open_) - 1
        open_.append(_children(said.id))


def _children(parent: str) -> Iterator[Said]:
    where = (("thread", "=", THREAD), ("parent", "=", parent))
    return map(_said, reads.fetch(reads.Query("Link", where, ("created",), limit=PAGE)))


def _blob(kind: str, name: str, content: object) -> protobufs.Entity:
    entity = _entity(kind, name)
    packed = zlib.compress(msgspec.msgpack.encode(content))
    entity.properties["content"].blob_value = packed
    entity.properties["content"].exclude_from_indexes = True
    return entity


def _unpacked(kind: str, names: Sequence[str], type_: Any) -> list[Any]:
    """Return the contents of entities, in the order of their names."""
    found = {
        each.key.path[-1].name: each.properties["content"] for each in reads.lookup(kind, names)
    }
    decoder = msgspec.msgpack.Decoder(type_)
    return [decoder.decode(zlib.decompress(found[name].blob_value)) for name in names]


def _embedded(thread: Sequence[Said]) -> Iterator[protobufs.Entity]:
    """Yield one entity with the whole thread."""
    yield _blob("Embedded", THREAD, in_order(thread))


def _page_of_embedded() -> list[bytes]:
    (run,) = _unpacked("Embedded", [THREAD], Packed)
    return [fragment(said, level) for level, said in run[:PAGE]]


def _buckets(thread: Sequence[Said]) -> Iterator[protobufs.Entity]:
    """Yield runs of comments in reading order, and an entity with the counts of the runs."""
    order, counts = in_order(thread), []
    for number, first in enumerate(range(0, len(order), BUCKET)):
        run = order[first : first + BUCKET]
        counts.append((f"{THREAD}#{number}", len(run)))
        yield _blob("Bucket", counts[-1][0], run)
    yield _blob("Head", THREAD, counts)


def _page_of_buckets() -> list[bytes]:
    (counts,) = _unpacked("Head", [THREAD], list[tuple[str, int]])
    names, total = [], 0
    for name, count in counts:
        if total >= PAGE:
            break
        names.append(name)
        total += count
    run = itertools.chain.from_iterable(_unpacked("Bucket", names, Packed))
    return [fragment(said, level) for level, said in itertools.islice(run, PAGE)]


def page_of_flatthread() -> list[bytes]:
    """Return the first page of the product."""
    asked = thread_pages.PageRequest(PAGE, None, "a secret of the benchmarks")
    return list(listings.page(loading.SCHEME, loading.NAME, asked).comments)


CLASSIC = {
    "adjacency": Layout(_links, _page_of_links),
    "embedded": Layout(_embedded, _page_of_embedded),
    "path": Layout(_paths, _page_of_paths),
    "buckets": Layout(_buckets, _page_of_buckets),
}
COLD, WARM = "materialized", "materialized, warm"
_MOST_EMBEDDED = 8_000  # One entity of 1 MiB holds fewer than 9,000 comments.
Ways = dict[str, tuple[connection.Store, Callable[[], list[bytes]]]]


def stored(stack: contextlib.ExitStack, folder: Path, thread: Sequence[Said]) -> Ways:
    """Store a thread in each layout that can hold it; return how to read its first page."""
    indexes = folder / "index.yaml"
    indexes.write_text(_INDEXES)
    ways: Ways = {}
    for name, layout in CLASSIC.items():
        if name != "embedded" or len(thread) <= _MOST_EMBEDDED:
            path = folder / f"{name}.db"
            engine = stack.enter_context(measuring.engine(path, indexes, durability="fast"))
            engine.load(layout.entities(thread), loading.PROJECT)
            ways[name] = measuring.store(engine), layout.page
    engine = measuring.engine(folder / "flatthread.db", durability="fast")
    loading.fill(stack.enter_context(engine), thread, is_folded=True)
    ways[COLD] = ways[WARM] = measuring.store(engine), page_of_flatthread
    return ways


def measure(folder: Path, thread: Sequence[Said], rounds: int) -> dict[str, float]:
    """Return the median processor seconds of a first page in each layout."""
    with contextlib.ExitStack() as stack:
        ways = stored(stack, folder, thread)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _, (name, (store, page)) in itertools.product(range(rounds), ways.items()):
            with store.context():
                if name == COLD:
                    loading.cold()
                start = time.process_time()
                page()
                times[name].append(time.process_time() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def draw(file: Path, *, quick: bool) -> None:
    """Measure threads of several sizes, and write the plot."""
    sizes, rounds = (QUICK_SIZES, 2) if quick else (SIZES, 9)
    longest = conversations.thread(shapes.repeated(shapes.grown(2_251), max(sizes)))
    lines: dict[str, list[tuple[int, float]]] = {name: [] for name in first_page_plot.LABELS}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="layouts-") as folder:
            for name, seconds in measure(Path(folder), longest[:size], rounds).items():
                print(f"{size:,} comments, {name}: {seconds * 1000:.2f} ms", flush=True)
                lines[name].append((size, seconds * 1000))
    file.write_text(first_page_plot.draw(lines), encoding="utf-8")

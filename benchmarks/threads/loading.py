"""A quick way to store a large thread.

The product stores the first comment; the rows of all other comments are copies of its row, with
positions computed by `sorthash`. A test compares these rows with the rows that an import stores.
"""

from collections.abc import Callable, Iterator, Sequence

from benchmarks.threads.conversations import START, Said
from comments import config
from comments.domain import records
from comments.domain.ids import sorthash
from comments.reading.compaction import compactor
from comments.reading.materialized import view_cache
from comments.sites import site_settings
from comments.store import connection, ownership, reads, transactions
from comments.store.memory import caches
from comments.store.models import comment_rows
from comments.tree import values
from comments.tree.bulk import bulk_append
from datastore_emulator import inprocess, protobufs

PROJECT = "bench"
NAME = records.ThreadName("bench", "page")
SCHEME = config.sorthash.Scheme(levels=100)  # No shape is deeper, so no reply is moved up a level.
RENDERER = "benchmark"


def author(said: Said) -> records.Author:
    """Return the author of a comment."""
    return records.Author(said.author_name, said.author_website, said.author_email, said.author_id)


def imported(said: Said) -> records.ImportedComment:
    """Return a comment in the form that an importer passes on."""
    return records.ImportedComment(
        id=said.id,
        reply_to=said.parent,
        author=author(said),
        body=said.body,
        html=said.html,
        renderer=RENDERER,
        status=records.Status.APPROVED,
        created=said.created,
        source="bench",
    )


def store_imported(thread: Sequence[Said], name: records.ThreadName = NAME) -> None:
    """Store comments through the product's import."""

    def body() -> None:
        batch = bulk_append.append_imported(
            SCHEME,
            [values.ImportedThread(name, [imported(said) for said in thread])],
            now=START,
        )
        transactions.apply(*batch.writes)

    transactions.transaction(body)


def fill(engine: inprocess.Engine, thread: Sequence[Said], *, is_folded: bool) -> None:
    """Store a site with a thread."""
    store = connection.Store(inprocess.Channel(engine), project=PROJECT)
    with store.context():
        site_settings.add(NAME.site, ["http://localhost"], scheme=SCHEME, now=START)
        add_thread(engine, NAME, thread, is_folded=is_folded)


def add_thread(
    engine: inprocess.Engine,
    name: records.ThreadName,
    thread: Sequence[Said],
    *,
    is_folded: bool,
    votes: Callable[[int], int] = lambda _place: 0,
) -> None:
    """Store a thread: the product stores the first comment, and the other rows copy its row.

    `votes` returns the number of upvotes for the comment at a position.
    """
    store_imported(thread[:1], name)
    query = reads.Query("Comment", where=(("thread", "=", comment_rows.thread_key_name(name)),))
    (template,) = reads.fetch(query)
    if is_folded:
        # Leave the rows as a compaction does, so that the compaction below has nothing to clear.
        for flag in ("unfolded", "rewrites"):
            template.properties[flag].boolean_value = False
        template.properties["fold_by"].null_value = 0
        template.properties["shelved"].boolean_value = True
    engine.load(rows(template, thread, votes), PROJECT)

    def count_roots() -> None:
        row = reads.get(comment_rows.thread_key(name))
        row.child_count = sum(said.parent is None for said in thread)
        transactions.apply(ownership.Writes("benchmark", put=(row,)))

    transactions.transaction(count_roots)
    if is_folded:
        compactor.compact(SCHEME, name)


def rows(
    template: protobufs.Entity, thread: Sequence[Said], votes: Callable[[int], int]
) -> Iterator[protobufs.Entity]:
    """Yield the rows of a thread as an import would store them."""
    children = dict.fromkeys((said.id for said in thread), 0)
    hashes: dict[str, str] = {}
    roots = 0
    numbers: list[int] = []
    for said in thread:
        if said.parent is None:
            numbers.append(roots)
            roots += 1
        else:
            children[said.parent] += 1
            numbers.append(children[said.parent])
        above = "" if said.parent is None else hashes[said.parent]
        hashes[said.id] = sorthash.child(SCHEME, above, numbers[-1])
    for place, (said, number) in enumerate(zip(thread, numbers, strict=True)):
        row = _row(template, said, (hashes[said.id], number, children[said.id]))
        for name in ("up", "score"):
            row.properties[name].integer_value = votes(place)
        yield row


def _row(template: protobufs.Entity, said: Said, place: tuple[str, int, int]) -> protobufs.Entity:
    row = protobufs.Entity()
    row.CopyFrom(template)
    row.key.path[-1].name = said.id
    values = row.properties
    sort_hash, values["number"].integer_value, values["child_count"].integer_value = place
    values["level"].integer_value = sorthash.level(SCHEME, sort_hash)
    texts = {
        "sort_hash": sort_hash,
        "slug": sorthash.slug(SCHEME, sort_hash),
        "author_name": said.author_name,
        "author_website": said.author_website,
        "author_email": said.author_email,
        "author_id": said.author_id,
        "body": said.body,
        "html": said.html,
    }
    if said.parent is not None:
        texts |= {"parent": said.parent, "reply_to": said.parent}
    for name, text in texts.items():
        values[name].string_value = text
    for name in ("created", "changed"):
        values[name].timestamp_value.FromDatetime(said.created)
    return row


def cold() -> None:
    """Empty this process's cache of threads."""
    held = view_cache.HOLDINGS.get()
    held.cache = caches.Cache(view_cache.CACHE_BYTES)

"""Flatthread's two ways of reading a thread, behind the same calls as the classic layouts.

Owns a quick way to store a large thread: rows copied from one that the product stored, with their
places computed by `sorthash`; a test holds them equal to what an import stores.

    Floor         one ordered query over the comments
    Materialized  directory, buckets and delta; folded and at rest unless told otherwise

What must stay true: both answer by the product's own code, and `Materialized` without a cache
(`cold`) unless the cache is what is measured.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from benchmarks.talk import START, Said
from comments import config
from comments.domain import presentation, records, sorthash
from comments.reading import thread_pages
from comments.reading.compaction import compactor
from comments.reading.materialized import thread_view, view_cache
from comments.sites import site_settings
from comments.store import caches, connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.tree import bulk_append, changes, ordered_query, placement, values
from comments.tree.threads import naming
from emulator import inprocess, protobufs

PROJECT = "bench"
NAME = records.ThreadName("bench", "page")
SCHEME = config.sorthash.Scheme(levels=100)  # no shape is deeper, so no reply moves beside another
_SECRET = "the benchmark's own secret"  # noqa: S105 - signs cursors that nobody keeps
_MOST = ordered_query.MAX_LIMIT
_RENDERER = "benchmark"


def author(said: Said) -> records.Author:
    """Who wrote a comment."""
    return records.Author(said.author_name, said.author_website, said.author_email, said.author_id)


def imported(said: Said) -> records.ImportedComment:
    """A comment as an importer hands it on."""
    return records.ImportedComment(
        id=said.id,
        reply_to=said.parent,
        author=author(said),
        body=said.body,
        html=said.html,
        renderer=_RENDERER,
        status=records.Status.APPROVED,
        created=said.created,
        source="bench",
    )


def store_imported(thread: Sequence[Said], name: records.ThreadName = NAME) -> None:
    """Store comments the product's way."""

    def body() -> None:
        batch = bulk_append.append_imported(
            SCHEME,
            name,
            [imported(said) for said in thread],
            title="",
            url="",
            state=records.ThreadState.OPEN,
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
    """Store a thread. The first comment goes the product's way; the others' rows are made of it.

    `votes` says how many upvotes the comment at a place has.
    """
    store_imported(thread[:1], name)
    query = reads.Query("Comment", where=(("thread", "=", comment_rows.thread_key_name(name)),))
    (template,) = reads.fetch(query)
    if is_folded:
        # As a folding leaves them, so that the one below has nothing to clear.
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
        compactor.fold(SCHEME, name)


def rows(
    template: protobufs.Entity, thread: Sequence[Said], votes: Callable[[int], int]
) -> Iterator[protobufs.Entity]:
    """Yield the rows of a thread as an import would leave them."""
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


def fold() -> None:
    """Fold what changed, and clear at once: in this process nothing holds an older directory."""
    folded = compactor.fold(SCHEME, NAME)
    if folded is not None:
        compactor.clear(folded)
    cold()


def cold() -> None:
    """Forget what this process holds of threads."""
    held = view_cache.HOLDINGS.get()
    held.cache = caches.Cache(view_cache.CACHE_BYTES)


def _all(page: Callable[[str | None], presentation.ThreadPage]) -> list[bytes]:
    """The comments of a listing, page after page."""
    found = page(None)
    comments = list(found.comments)
    while found.cursor is not None:
        found = page(found.cursor)
        comments += found.comments
    return comments


class _Ours:
    """What both ways share: how comments are written."""

    def post(self, said: Said) -> None:
        """Store a reply."""
        draft = values.Draft(
            id=said.id,
            name=NAME,
            reply_to=said.parent,
            author=author(said),
            text=values.Text(said.body, said.html, _RENDERER),
            fingerprint=b"",
            created=said.created,
            brought=naming.encode(naming.Brought()),
        )
        transactions.transaction(
            lambda: transactions.apply(*placement.append(SCHEME, draft).writes)
        )

    def edit(self, comment_id: str, html: str) -> None:
        """Replace a text."""
        text = values.Text(html, html, _RENDERER)
        now = datetime(2026, 6, 1, tzinfo=UTC)

        def body() -> None:
            change = changes.edit(comment_id, text, now=now, check=lambda _: None)
            transactions.apply(*change.writes)

        transactions.transaction(body)


class Floor(_Ours):
    """The one ordered query, and counts for what a page says of it."""

    name = "floor"

    def page(self, limit: int) -> list[bytes]:
        """The first comments."""
        found = ordered_query.page(
            NAME,
            order=ordered_query.Order.THREAD,
            parent=None,
            limit=limit,
            cursor=None,
            secret=_SECRET,
        )
        return list(presentation.page(found).comments)

    def whole(self) -> list[bytes]:
        """All comments."""
        return [presentation.fragment(row) for row in ordered_query.thread(NAME)]

    def subtree(self, comment_id: str) -> list[bytes]:
        """What stands below a comment."""

        def page(cursor: str | None) -> presentation.ThreadPage:
            found = ordered_query.replies(comment_id, limit=_MOST, cursor=cursor, secret=_SECRET)
            return presentation.page(found)

        return _all(page)


class Materialized(_Ours):
    """Directory, buckets and delta, nothing of it held before."""

    name = "materialised"

    def before(self) -> None:
        """What comes before each call, and is no part of it."""
        cold()

    def page(self, limit: int) -> list[bytes]:
        """The first comments."""
        asked = thread_pages.Asked(limit, None, _SECRET)
        return list(thread_pages.page(SCHEME, NAME, asked).comments)

    def whole(self) -> list[bytes]:
        """All comments."""
        return thread_view.using(NAME, lambda view: [row.json for row in view.rows()])

    def subtree(self, comment_id: str) -> list[bytes]:
        """What stands below a comment."""

        def page(cursor: str | None) -> presentation.ThreadPage:
            return thread_pages.replies(comment_id, thread_pages.Asked(_MOST, cursor, _SECRET))

        return _all(page)


class Warm(Materialized):
    """The same in a process that has read the thread before."""

    name = "materialised, warm"
    calls = ("page", "whole", "subtree", "page after changes")

    def before(self) -> None:
        """Keep what is held."""

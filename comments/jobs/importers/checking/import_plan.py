"""First pass of an import: read and check the whole file without storing anything.

The file is refused (`errors.BadImport`, with the line) if any part is ambiguous or invalid, such as
a date, an id or a text that is too long. Faults that can be corrected without losing a comment are
corrected and noted. A comment becomes a root if its parent is missing or in a different thread, and
a cycle of replies is cut at its earliest comment. A post that was sent twice is imported once. A
name is repaired (`import_names`), and an unusable website is removed.

Ids, links and dates are kept in memory; the texts are in a temporary file (`spool`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from comments import errors
from comments.domain import imported_ids, records, thread_ids
from comments.domain.languages import error_texts
from comments.domain.records import Status, ThreadState
from comments.domain.text import cleaning, sanitizing
from comments.jobs.importers import import_source
from comments.jobs.importers.checking import (
    doubled_posts,
    import_authors,
    import_bodies,
    import_report,
    page_mapping,
    spool,
    write_order,
)
from comments.jobs.importers.parsing import html_references
from comments.tree.threads import naming

# The maximum number of comments in one file. Each comment uses about half a kilobyte of memory.
MAX_COMMENTS = 1_000_000
_MAX_TITLE = 500
_FIRST_PAGE = datetime(1990, 1, 1, tzinfo=UTC)  # of the World Wide Web
_CLOCKS = timedelta(days=1)  # How far another system's clock may be ahead.


class PlannedThread(msgspec.Struct, frozen=True):
    """A thread to store, with its comments in writing order.

    `links` are the addresses of its pages in the file, and `newest` is the time of the newest
    comment. A thread that an export of Flatthread contains (`kept`) may have no comments. `copies`
    counts its comments that other threads have too, by thread.
    """

    name: records.ThreadName
    title: str
    url: str
    state: ThreadState
    nodes: tuple[write_order.Node, ...]
    links: tuple[str, ...] = ()
    kept: records.MovedThread | None = None
    newest: datetime | None = None
    copies: Mapping[str, int] = {}


class FirstPass:
    """The first pass over one file."""

    def __init__(
        self,
        file: Path,
        site: records.Site,
        store: spool.Spool,
        *,
        secret: str,
        unit: str = "line",
        mapping: page_mapping.PageMapping | None = None,
    ) -> None:
        self.notes: list[import_report.Note] = []
        self.tallies = import_report.Tallies()
        self.system = ""
        self.keeps_ids = False  # whether comments keep the ids that they have in the file
        self._file = file
        self._now = datetime.now(UTC)
        self._site = site
        self._unit = unit
        self._spool = store
        self._sources: dict[str, import_source.SourceThread] = {}
        self._nodes: dict[str, write_order.Node] = {}
        self._left_out: set[str] = set()
        self._with_comments: set[str] = set()  # The keys of threads with comments.
        self._copies: dict[str, Counter[str]] = defaultdict(Counter)
        self._held: set[str] = set()  # The keys of threads whose comments are held.
        self._authors = import_authors.Authors(secret, site.id)
        self._mapping = mapping or page_mapping.PageMapping()
        self._doubles = doubled_posts.DoubledPosts()

    def take(self, item: import_source.Item) -> None:
        """Check and record the next item in the file.

        Raises:
            errors.BadImport: the item cannot be stored.
        """
        if isinstance(item, import_source.SourceThread):
            self._take_thread(item)
        elif isinstance(item, import_source.OtherItem):
            self._leave_out(import_report.OTHER_ITEMS, item.id, item.line, item.what)
        elif isinstance(item, import_source.LeftOut):
            self.tallies.add(import_report.LEFT_OUT, item.what, item.line, item.count)
        elif isinstance(item, import_source.Corrected):
            self.tallies.add(import_report.CORRECTED, item.what, item.line)
        elif item.id in self._nodes:
            self._note(
                import_report.OTHER if self._doubles.differs(item) else import_report.REPEATED,
                item.line,
                f"{item.id}, first in {self._unit} {self._nodes[item.id].line}",
            )
        else:
            self._take_comment(item)

    def threads(self, levels: int) -> tuple[PlannedThread, ...]:
        """Resolve threads and parents after reading the file, and return the threads to store."""
        for text in self._mapping.texts:
            self.tallies.mention(import_report.MAPPED, text)
        names = self._settle_threads()
        if self.system != imported_ids.OWN:  # our own exports contain each post once
            self._merge_doubles()
            self._note_copies()
        self._settle_parents()
        by_thread: dict[str, list[write_order.Node]] = defaultdict(list)
        for node in self._nodes.values():
            by_thread[node.thread].append(node)
        for name, sources in names.items():
            if len(sources) > 1:  # one page now, so dates order the comments
                for node in by_thread.get(name, []):
                    node.rank = 0
        return tuple(
            self._planned(name, sources, write_order.arrange(by_thread.get(name, []), levels))
            for name, sources in names.items()
            if name in by_thread or sources[0].kept is not None
        )

    def empty_pages(self) -> tuple[str, ...]:
        """Return the addresses of the pages without comments, after `threads` was called."""
        others = (each for key, each in self._sources.items() if key not in self._with_comments)
        return tuple(self._address(thread) for thread in others)

    def _note(self, kind: str, line: int, text: str) -> None:
        self.notes.append(import_report.Note(kind, line, text))

    def _leave_out(self, kind: str, item_id: str, line: int, text: str) -> None:
        self._left_out.add(item_id)
        self._note(kind, line, text)

    def _take_thread(self, thread: import_source.SourceThread) -> None:
        if thread.kept is not None:
            self.system, self.keeps_ids = imported_ids.OWN, thread.keeps_ids
        first = self._sources.setdefault(thread.key, thread)
        if first is not thread:
            self._note(
                import_report.REPEATED,
                thread.line,
                f"thread {thread.key}, first in {self._unit} {first.line}",
            )

    def _take_comment(self, comment: import_source.SourceComment) -> None:
        if len(self._nodes) == MAX_COMMENTS:
            raise self._bad(comment.line, f"the file has more than {MAX_COMMENTS:,} comments")
        self.system, kept = comment.system, comment.kept
        self._note_date(comment)
        self._doubles.add(comment)
        self._nodes[comment.id] = write_order.Node(
            id=comment.id,
            line=comment.line,
            thread=comment.thread,
            answers=comment.parent,
            created=comment.created,
            status=comment.status,
            place=self._spool.add(self._imported(comment)),
            rank=0 if kept is None else comment.line,
            number=None if kept is None else kept.number,
            above=None if kept is None else kept.parent,
            more=0 if kept is None else len(kept.votes),
        )

    def _note_date(self, comment: import_source.SourceComment) -> None:
        is_late = comment.created > self._now + _CLOCKS
        if is_late or comment.created < _FIRST_PAGE:
            kind = import_report.LATE if is_late else import_report.EARLY
            self._note(kind, comment.line, f"{comment.id}: {comment.created}")

    def _bad(self, line: int, message: str) -> errors.BadImport:
        return errors.BadImport(str(self._file), line, message, self._unit)

    def _imported(self, comment: import_source.SourceComment) -> records.ImportedComment:
        """Convert a comment to its stored form, but without its parent."""
        is_erased = comment.status is Status.RETRACTED
        body, markup = ("", comment.markup) if is_erased else self._body(comment)
        if not body and not is_erased:
            self._note(import_report.EMPTY, comment.line, comment.id)
        try:
            converted = import_bodies.convert(body, markup)
        except errors.BadInput as error:
            said = error_texts.sentence(error)
            raise self._bad(comment.line, f"comment {comment.id}: {said}") from error
        for kind, count in (
            (import_report.IMAGES, converted.images),
            (import_report.EMBEDS, converted.embeds),
            (import_report.UNLINKED, converted.unlinked),
            (import_report.REMOVED, converted.removed),
        ):
            if count:
                self._note(kind, comment.line, comment.id)
        return records.ImportedComment(
            id=imported_ids.comment_id(self._site.id, comment.system, comment.id),
            reply_to=None,
            author=records.Author("") if is_erased else self._author(comment),
            body=converted.body,
            html=converted.html,
            renderer="" if is_erased else converted.renderer,
            status=comment.status,
            created=comment.created,
            source=f"{comment.system}:{comment.id}",
            up=comment.up,
            down=comment.down,
            edited=comment.edited,
            pinned=comment.pinned,
            kept=self._kept(comment),
        )

    def _body(self, comment: import_source.SourceComment) -> tuple[str, import_source.Markup]:
        """Correct a text and its markup.

        A name that is too long is the text of a comment that has no other. In Markdown, references
        to control characters stay, because they can be code.
        """
        markup = comment.markup
        if not comment.body.strip() and len(comment.name) > cleaning.MAX_NAME:
            self._note(import_report.TEXT_IN_NAME, comment.line, comment.id)
            return comment.name, import_source.Markup.PLAIN
        body = comment.body.replace("\0", "")
        corrected = [import_report.NUL] if body != comment.body else []
        if markup is not import_source.Markup.PLAIN:
            is_html = markup is import_source.Markup.HTML
            correct = html_references.repaired if is_html else html_references.joined
            body, found = correct(body)
            corrected += found
        for each in corrected:
            self.tallies.add(import_report.CORRECTED, each, comment.line)
        return body, markup

    def _kept(self, comment: import_source.SourceComment) -> records.MovedComment | None:
        """Map the address in a comment's thread data, which can become the thread's address."""
        kept = comment.kept
        if kept is None or not kept.brought or not self._mapping.texts:
            return kept
        brought = naming.decode(kept.brought)
        mapped = _url(self._mapping.apply(brought.url).url)
        return msgspec.structs.replace(kept, brought=naming.encode(brought._replace(url=mapped)))

    def _author(self, comment: import_source.SourceComment) -> records.Author:
        described = self._authors.of(comment)
        for kind, said in described.faults:
            self._note(kind, comment.line, f"{comment.id}: {said}")
        if comment.kept is None:
            return described.author
        author, kept = described.author, comment.kept
        known_as = author.id if kept.author is None else kept.author
        return msgspec.structs.replace(author, id=known_as, is_staff=kept.is_staff)

    def _settle_threads(self) -> dict[str, list[import_source.SourceThread]]:
        """Assign an id to each thread with comments.

        Drop the comments of threads without a usable id.
        """
        names: dict[str, str | None] = {}
        found: dict[str, list[import_source.SourceThread]] = defaultdict(list)
        for node in list(self._nodes.values()):
            thread = self._sources.get(node.thread)
            if thread is None:
                self._note(import_report.NO_THREAD, node.line, f"{node.id}, thread {node.thread}")
                self._drop(node)
                continue
            if thread.key not in names:
                names[thread.key] = name = self._thread_id(thread)
                if name is not None:
                    found[name].append(thread)
            self._settle_node(node, thread, names[thread.key])
        self._note_hidden(self._sources[key] for key, name in names.items() if name is not None)
        self._with_comments = set(names)
        for thread in self._sources.values():
            if thread.kept is not None and thread.key not in names:
                found[self._thread_id(thread) or thread.id].append(thread)
        self._note_threads(found)
        return found

    def _settle_node(
        self, node: write_order.Node, thread: import_source.SourceThread, name: str | None
    ) -> None:
        if name is None:
            self._drop(node)
            return
        node.thread = name
        if thread.hidden and node.status is Status.APPROVED:
            node.status = Status.PENDING
            self._held.add(thread.key)

    def _drop(self, node: write_order.Node) -> None:
        self._left_out.add(node.id)
        del self._nodes[node.id]

    def _thread_id(self, thread: import_source.SourceThread) -> str | None:
        if thread.deleted:
            self._note(import_report.DELETED, thread.line, thread.link or thread.key)
            return None
        mapped = self._mapped(thread)
        if thread.kept is not None and not mapped.by:
            return self._kept_id(thread)
        for text in mapped.by:
            self.tallies.add(import_report.MAPPED, text, thread.line)
        try:
            return thread_ids.page_id(mapped.url, self._site)
        except errors.BadInput as error:
            return self._id_without_link(thread, error)

    def _kept_id(self, thread: import_source.SourceThread) -> str:
        try:
            return thread_ids.canonical_id(thread.id)
        except errors.BadInput as error:
            raise self._bad(thread.line, error_texts.sentence(error)) from error

    def _mapped(self, thread: import_source.SourceThread) -> page_mapping.MappedPage:
        return self._mapping.apply(self._address(thread))

    def _address(self, thread: import_source.SourceThread) -> str:
        return thread_ids.absolute(thread.link, self._site.origins)

    def _id_without_link(
        self, thread: import_source.SourceThread, reason: errors.BadInput
    ) -> str | None:
        said = error_texts.sentence(reason)
        try:
            name = thread_ids.canonical_id(thread.id)
        except errors.BadInput:
            self._note(import_report.NO_NAME, thread.line, f"{thread.link!r}: {said}")
            return None
        self._note(import_report.NO_LINK, thread.line, f"{name} ({thread.link!r}: {said})")
        return name

    def _note_hidden(self, threads: Iterable[import_source.SourceThread]) -> None:
        for thread in threads:
            if thread.hidden:
                kind = import_report.HIDDEN if thread.key in self._held else import_report.UNCHANGED
                self._note(kind, thread.line, thread.link or thread.key)

    def _note_threads(self, found: dict[str, list[import_source.SourceThread]]) -> None:
        own = {origin.partition("://")[2] for origin in self._site.origins}
        elsewhere: dict[str, list[import_source.SourceThread]] = defaultdict(list)
        for name, threads in found.items():
            if len(threads) > 1:
                lines: dict[str, list[int]] = defaultdict(list)
                for thread in threads:
                    lines[thread.link].append(thread.line)
                links = ", ".join(
                    f"{link} ({import_report.places(self._unit, lines[link])})" for link in lines
                )
                self._note(import_report.MERGED, threads[0].line, f"{name}: {links}")
            host = name.partition("/")[0]
            if host not in own and threads[0].kept is None:
                elsewhere[host].append(threads[0])
        for host, threads in elsewhere.items():
            self._note(
                import_report.ELSEWHERE,
                threads[0].line,
                f"{host or 'no host'} ({import_report.counted(len(threads), 'thread')})",
            )

    def _merge_doubles(self) -> None:
        """Leave out doubled posts; replies to them answer the first post instead."""
        first_of = {}
        for double, first in self._doubles.find(self._nodes.values()):
            first_of[double.id] = first.id
            del self._nodes[double.id]
            text = f"{double.id}, first in {self._unit} {first.line}: {first.id}"
            self._note(import_report.DOUBLED, double.line, text)
        for node in self._nodes.values():
            node.answers = first_of.get(node.answers or "", node.answers)

    def _note_copies(self) -> None:
        for node, page in self._doubles.on_other_pages(self._nodes.values()):
            self._note(import_report.TWICE, node.line, node.id)
            self._copies[node.thread][page] += 1

    def _settle_parents(self) -> None:
        for node in self._nodes.values():
            kind = self._fault(node)
            if kind:
                self._note(kind, node.line, f"{node.id} replies to {node.answers}")
                node.answers = None
        for circle in list(write_order.cycles(self._nodes)):
            earliest = min(circle, key=lambda node: node.order)
            self._note(
                import_report.CYCLES,
                earliest.line,
                " replies to ".join(node.id for node in circle[:5]),
            )
            earliest.answers = None

    def _fault(self, node: write_order.Node) -> str:
        """Return the kind of note for a comment that names an unusable parent, otherwise ""."""
        if node.answers is None:
            return ""
        answered = self._nodes.get(node.answers)
        if answered is None:
            return (
                import_report.UNROOTED if node.answers in self._left_out else import_report.ORPHANS
            )
        return import_report.CROSSING if answered.thread != node.thread else ""

    def _planned(
        self, name: str, sources: list[import_source.SourceThread], nodes: list[write_order.Node]
    ) -> PlannedThread:
        kept = sources[0].kept
        for node in nodes:
            if kept is not None and node.number is None:
                kind = import_report.RENUMBERED if node.displaced else import_report.BESIDE
                self._note(kind, node.line, f"{name}: {node.id}")
        # A thread that combines several pages stays open if one of the pages is open.
        is_closed = all(thread.closed for thread in sources)
        if is_closed:
            self._note(import_report.CLOSED, sources[0].line, name)
        titles = (_title(thread.title) if kept is None else thread.title for thread in sources)
        return PlannedThread(
            name=records.ThreadName(self._site.id, name),
            title=next(_nonempty(titles), ""),
            url=next(_nonempty(_url(self._mapped(thread).url) for thread in sources), ""),
            state=ThreadState.CLOSED if is_closed else ThreadState.OPEN,
            nodes=tuple(nodes),
            links=tuple(self._address(thread) for thread in sources),
            kept=kept,
            copies=self._copies.get(name, {}),
            newest=max((node.created for node in nodes), default=None),
        )


def statuses(threads: tuple[PlannedThread, ...]) -> dict[str, int]:
    """Count the comments by status."""
    return dict(Counter(node.status.value for thread in threads for node in thread.nodes))


def _nonempty(texts: Iterator[str]) -> Iterator[str]:
    return (text for text in texts if text)


def _title(raw: str) -> str:
    try:
        return " ".join(sanitizing.plain_text(raw.replace("\0", "")).split())[:_MAX_TITLE]
    except errors.BadInput:
        return ""


def _url(link: str) -> str:
    try:
        return cleaning.clean_website(link)
    except errors.BadInput:
        return ""

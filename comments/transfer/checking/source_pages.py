"""Name the threads that the pages of an export become.

A page that belongs to the site gets the id of its address; any other page keeps its own id. Pages
that get the same address are merged into one thread.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.ids import thread_ids
from comments.domain.languages import error_texts
from comments.domain.records import ThreadState
from comments.domain.text import sanitizing
from comments.domain.text.shown_values import quantity
from comments.threads import thread_aliases
from comments.transfer.checking import import_report, page_mapping, write_order
from comments.transfer.import_source import SourceThread

_MAX_TITLE = 500


class PlannedThread(msgspec.Struct, frozen=True):
    """A thread to store, with its comments in writing order.

    `links` are the addresses of the thread's pages in the file, and `newest` is the time of its
    newest comment. A thread that comes from an export of Flatthread (`kept`) may have no comments.
    `copies` contains, for each other thread, how many comments both threads have.
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


class SourcePages:
    """The pages of one file. `by_thread` contains the pages that become threads, by thread id."""

    def __init__(
        self,
        site: records.Site,
        remarks: import_report.ImportReport,
        mapping: page_mapping.PageMapping,
    ) -> None:
        self.by_thread: dict[str, list[SourceThread]] = defaultdict(list)
        self._site = site
        self._remarks = remarks
        self._mapping = mapping
        self._pages: dict[str, SourceThread] = {}
        self._names: dict[str, str | None] = {}  # Thread ids of pages with comments, by page key
        self._held: set[str] = set()  # The keys of hidden pages with comments that became pending.

    def add(self, page: SourceThread) -> None:
        """Add a page; if several pages have the same key, only the first one counts."""
        first = self._pages.setdefault(page.key, page)
        if first is not page:
            text = f"thread {page.key}, first in {self._remarks.unit} {first.line}"
            self._remarks.note(import_report.REPEATED, page.line, text)

    def get(self, key: str) -> SourceThread | None:
        """Return the page with this key."""
        return self._pages.get(key)

    def name_of(self, page: SourceThread) -> str | None:
        """Return the thread id of a page with comments; None if the page is left out with them."""
        if page.key not in self._names:
            name = self._names[page.key] = self._thread_id(page)
            if name is not None:
                self.by_thread[name].append(page)
        return self._names[page.key]

    def hold(self, page: SourceThread) -> None:
        """Record that approved comments of a hidden page became pending."""
        self._held.add(page.key)

    def finish(self) -> None:
        """Add the kept threads without comments, and note merged, hidden and foreign pages."""
        for key, name in self._names.items():
            page = self._pages[key]
            if name is not None and page.hidden:
                kind = import_report.HIDDEN if key in self._held else import_report.UNCHANGED
                self._remarks.note(kind, page.line, page.link or key)
        for page in self._pages.values():
            if page.kept is not None and page.key not in self._names:
                self.by_thread[self._thread_id(page) or page.id].append(page)
        self._note_merged_pages()
        self._note_hosts()

    def empty_pages(self) -> tuple[str, ...]:
        """Return the addresses of the pages without comments."""
        others = (page for key, page in self._pages.items() if key not in self._names)
        return tuple(map(self._address, others))

    def planned_thread(
        self, name: str, nodes: Sequence[write_order.Node], copies: Mapping[str, int]
    ) -> PlannedThread:
        """Return a thread with its comments."""
        pages = self.by_thread[name]
        kept = pages[0].kept
        # A thread that combines several pages stays open if one of the pages is open.
        is_closed = all(page.closed for page in pages)
        if is_closed:
            self._remarks.note(import_report.CLOSED, pages[0].line, name)
        titles = (_title(page.title) if kept is None else page.title for page in pages)
        urls = (self._mapping.website(self._address(page)) for page in pages)
        return PlannedThread(
            name=records.ThreadName(self._site.id, name),
            title=next(filter(None, titles), ""),
            url=next(filter(None, urls), ""),
            state=ThreadState.CLOSED if is_closed else ThreadState.OPEN,
            nodes=tuple(nodes),
            links=tuple(map(self._address, pages)),
            kept=kept,
            copies=copies,
            newest=max((node.created for node in nodes), default=None),
        )

    def _thread_id(self, page: SourceThread) -> str | None:
        """Return the id of the stored thread to which a page belongs, or None for no thread."""
        named = self._named_id(page)
        return None if named is None else thread_aliases.stored_id(self._site, named)

    def _named_id(self, page: SourceThread) -> str | None:
        if page.deleted:
            self._remarks.note(import_report.DELETED, page.line, page.link or page.key)
            return None
        mapped = self._mapping.apply(self._address(page))
        if page.kept is not None and not mapped.by:
            return self._kept_id(page)
        for text in mapped.by:
            self._remarks.count(import_report.MAPPED, text, page.line)
        try:
            return thread_ids.page_id(mapped.url, self._site)
        except errors.BadInput as error:
            return self._id_without_link(page, error_texts.sentence(error))

    def _kept_id(self, page: SourceThread) -> str:
        try:
            return thread_ids.canonical_id(page.id)
        except errors.BadInput as error:
            raise self._remarks.bad(page.line, error_texts.sentence(error)) from error

    def _id_without_link(self, page: SourceThread, reason: str) -> str | None:
        try:
            name = thread_ids.canonical_id(page.id)
        except errors.BadInput:
            self._remarks.note(import_report.NO_NAME, page.line, f"{page.link!r}: {reason}")
            return None
        self._remarks.note(import_report.NO_LINK, page.line, f"{name} ({page.link!r}: {reason})")
        return name

    def _address(self, page: SourceThread) -> str:
        return thread_ids.absolute(page.link, self._site.origins)

    def _note_merged_pages(self) -> None:
        for name, pages in self.by_thread.items():
            if len(pages) > 1:
                lines: dict[str, list[int]] = defaultdict(list)
                for page in pages:
                    lines[page.link].append(page.line)
                unit = self._remarks.unit
                links = ", ".join(
                    f"{link} ({import_report.places(unit, lines[link])})" for link in lines
                )
                self._remarks.note(import_report.MERGED, pages[0].line, f"{name}: {links}")

    def _note_hosts(self) -> None:
        own = {origin.partition("://")[2] for origin in self._site.origins}
        elsewhere: dict[str, list[SourceThread]] = defaultdict(list)
        for name, (page, *_) in self.by_thread.items():
            host = name.partition("/")[0]
            if host not in own and page.kept is None:
                elsewhere[host].append(page)
        for host, pages in elsewhere.items():
            text = f"{host or 'no host'} ({quantity(len(pages), 'thread')})"
            self._remarks.note(import_report.ELSEWHERE, pages[0].line, text)


def _title(raw: str) -> str:
    try:
        return " ".join(sanitizing.plain_text(raw.replace("\0", "")).split())[:_MAX_TITLE]
    except errors.BadInput:
        return ""

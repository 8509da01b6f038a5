"""First pass of an import: read and check the whole file without storing anything.

The file is refused (`errors.BadImport`, with the line) if any part of it is ambiguous or invalid,
such as an invalid date or a text that is too long. Faults that can be corrected without losing a
comment are corrected and noted. A comment becomes a root if its parent is missing or in a different
thread, and a cycle of replies is cut at its earliest comment. A post that was sent twice is
imported once. `comment_conversion` converts the comments, and `source_pages` names their threads.

Ids, links and dates are kept in memory; the texts are in a temporary file (`spool`).
"""

from collections import Counter, defaultdict

from comments.domain import records
from comments.domain.ids import imported_ids
from comments.domain.records import Status
from comments.transfer import import_source
from comments.transfer.checking import (
    comment_conversion,
    doubled_posts,
    import_report,
    page_mapping,
    source_pages,
    spool,
    write_order,
)

# The maximum number of comments in one file. Each comment uses about half a kilobyte of memory.
MAX_COMMENTS = 1_000_000


class FirstPass:
    """The first pass over one file; it also fills the report. The caller must close the spool."""

    def __init__(
        self,
        site: records.Site,
        remarks: import_report.ImportReport,
        *,
        secret: str,
        mapping: page_mapping.PageMapping,
    ) -> None:
        self.system = ""
        self.keeps_ids = False  # Whether comments keep the ids that they have in the file
        self.site = site
        self.spool = spool.Spool()
        self.mapping = mapping
        self._remarks = remarks
        self._pages = source_pages.SourcePages(site, remarks, mapping)
        self._conversion = comment_conversion.CommentConversion(
            site, remarks, mapping, secret=secret
        )
        self._doubles = doubled_posts.DoubledPosts()
        self._nodes: dict[str, write_order.Node] = {}
        self._left_out: set[str] = set()
        self._former: set[str] = set()

    def take(self, item: import_source.Item) -> None:
        """Check and record the next item in the file.

        Raises:
            errors.BadImport: the item cannot be stored.
        """
        match item:
            case import_source.SourceThread():
                self._take_thread(item)
            case import_source.OtherItem():
                self._left_out.add(item.id)
                self._remarks.note(import_report.OTHER_ITEMS, item.line, item.what)
            case import_source.LeftOut():
                self._remarks.count(import_report.LEFT_OUT, item.what, item.line, item.count)
            case import_source.Corrected():
                self._remarks.count(import_report.CORRECTED, item.what, item.line)
            case _:
                self._take_comment(item)

    def threads(self, levels: int) -> tuple[source_pages.PlannedThread, ...]:
        """Resolve threads and parents after reading the file, and return the threads to store."""
        for text in self.mapping.texts:
            self._remarks.count(import_report.MAPPED, text, line=0, number=0)
        self._settle_threads()
        copies: dict[str, Counter[str]] = defaultdict(Counter)
        if self.system != imported_ids.OWN:  # Our own exports contain each post once
            self._merge_doubles()
            for node, page in self._doubles.on_other_pages(self._nodes.values()):
                self._remarks.note(import_report.TWICE, node.line, node.id)
                copies[node.thread][page] += 1
        self._settle_parents()
        by_thread: dict[str, list[write_order.Node]] = defaultdict(list)
        for node in self._nodes.values():
            by_thread[node.thread].append(node)
        return tuple(
            self._planned_thread(name, by_thread.get(name, []), copies.get(name, Counter()), levels)
            for name, pages in self._pages.by_thread.items()
            if name in by_thread or pages[0].kept is not None
        )

    def empty_pages(self) -> tuple[str, ...]:
        """Return the addresses of the pages without comments, after `threads` was called."""
        return self._pages.empty_pages()

    def _take_thread(self, thread: import_source.SourceThread) -> None:
        if thread.kept is not None:
            self.system, self.keeps_ids = imported_ids.OWN, thread.keeps_ids
        self._pages.add(thread)

    def _take_comment(self, comment: import_source.SourceComment) -> None:
        first = self._nodes.get(comment.id)
        if first is not None:
            is_other = self._doubles.differs(comment)
            kind = import_report.OTHER if is_other else import_report.REPEATED
            text = f"{comment.id}, first in {self._remarks.unit} {first.line}"
            self._remarks.note(kind, comment.line, text)
            return
        if len(self._nodes) == MAX_COMMENTS:
            text = f"the file has more than {MAX_COMMENTS:,} comments"
            raise self._remarks.bad(comment.line, text)
        self.system, kept = comment.system, comment.kept
        self._doubles.add(comment)
        former = "" if comment.former in self._former else comment.former
        self._former.add(former)
        self._nodes[comment.id] = write_order.Node(
            id=comment.id,
            line=comment.line,
            thread=comment.thread,
            answers=comment.parent,
            created=comment.created,
            status=comment.status,
            place=self.spool.add(self._conversion.convert(comment)),
            rank=0 if kept is None else comment.line,
            number=None if kept is None else kept.number,
            above=None if kept is None else kept.parent,
            more=0 if kept is None else len(kept.votes),
            former=comment.id if comment.system == imported_ids.OWN else former,
        )

    def _settle_threads(self) -> None:
        """Assign an id to each thread. If a thread gets no usable id, drop its comments."""
        for node in list(self._nodes.values()):
            page = self._pages.get(node.thread)
            name = None if page is None else self._pages.name_of(page)
            if page is None:
                text = f"{node.id}, thread {node.thread}"
                self._remarks.note(import_report.NO_THREAD, node.line, text)
            if page is None or name is None:
                self._left_out.add(node.id)
                del self._nodes[node.id]
                continue
            node.thread = name
            if page.hidden and node.status is Status.APPROVED:
                node.status = Status.PENDING
                self._pages.hold(page)
        self._pages.finish()

    def _merge_doubles(self) -> None:
        """Leave out doubled posts; replies to a doubled post become replies to the first post."""
        first_of = {}
        for double, first in self._doubles.find(self._nodes.values()):
            first_of[double.id] = first.id
            del self._nodes[double.id]
            text = f"{double.id}, first in {self._remarks.unit} {first.line}: {first.id}"
            self._remarks.note(import_report.DOUBLED, double.line, text)
        for node in self._nodes.values():
            node.answers = first_of.get(node.answers or "", node.answers)

    def _settle_parents(self) -> None:
        for node in self._nodes.values():
            kind = self._fault(node)
            if kind:
                self._remarks.note(kind, node.line, f"{node.id} replies to {node.answers}")
                node.answers = None
        for circle in list(write_order.cycles(self._nodes)):
            earliest = min(circle, key=lambda node: node.order)
            text = " replies to ".join(node.id for node in circle[:5])
            self._remarks.note(import_report.CYCLES, earliest.line, text)
            earliest.answers = None

    def _fault(self, node: write_order.Node) -> str:
        """Return the kind of note for a comment that names an unusable parent, otherwise ""."""
        if node.answers is None:
            return ""
        answered = self._nodes.get(node.answers)
        if answered is not None:
            return import_report.CROSSING if answered.thread != node.thread else ""
        is_left_out = node.answers in self._left_out
        return import_report.UNROOTED if is_left_out else import_report.ORPHANS

    def _planned_thread(
        self, name: str, nodes: list[write_order.Node], copies: Counter[str], levels: int
    ) -> source_pages.PlannedThread:
        pages = self._pages.by_thread[name]
        if len(pages) > 1:  # Pages were merged into one, so sort by date
            for node in nodes:
                node.rank = 0
        arranged = write_order.arrange(nodes, levels)
        for node in arranged:
            if pages[0].kept is not None and node.number is None:
                kind = import_report.RENUMBERED if node.displaced else import_report.BESIDE
                self._remarks.note(kind, node.line, f"{name}: {node.id}")
        return self._pages.planned_thread(name, arranged, copies)

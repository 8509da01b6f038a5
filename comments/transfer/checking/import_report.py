"""Report to the operator what the first pass found in an export."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from comments import errors
from comments.domain.text.shown_values import quantity

# The maximum number of characters in a note. Exports contain text that strangers typed, so notes
# are cut off.
_LONGEST = 300
# The maximum number of notes that are listed per kind; further notes are only counted.
_SHOWN = 20
# The maximum number of line numbers shown for a kind that is summarized in one line.
_SUMMED = 3

# The kinds of notes, as the report shows them.
MERGED = "Pages merged into one thread"
CLOSED = "Threads that are closed in the file, so readers cannot post in them"
ELSEWHERE = "Hosts that do not belong to the website"
NO_LINK = "Threads without a usable link, imported under their id"
NO_NAME = "Threads without a usable link or id, left out with their comments"
DELETED = "Deleted threads, left out with their comments"
HIDDEN = "Pages that are not public, whose approved comments became pending"
UNCHANGED = "Pages that are not public, without approved comments"
NO_THREAD = "Comments whose thread is not in the file, left out"
REPEATED = "Duplicate ids, left out after the first"
OTHER = "Duplicate ids with other content, left out after the first"
DOUBLED = "Posts that were sent twice, left out after the first"
TWICE = "Comments that another page of the file has too"
OTHER_ITEMS = "Items that are not comments, left out"
ORPHANS = "Replies to comments that are not in the file, imported as roots"
UNROOTED = "Replies to items that were left out, imported as roots"
CROSSING = "Replies to comments of other threads, imported as roots"
CYCLES = "Cycles of replies, cut at the earliest comment"
RENUMBERED = "Comments whose places do not fit the site's levels, renumbered"
BESIDE = "Comments whose places fit, renumbered with others of their threads"
NAMELESS = 'Comments without a usable name, imported as "Guest"'
LONG_NAMES = "Names that are too long, shortened"
REPAIRED_NAMES = "Names with control characters or too many marks, which were removed"
TEXT_IN_NAME = "Comments without text whose names are too long, which became the text"
WEBSITES = "Websites that are not valid http(s) addresses, left out"
EMPTY = "Comments without text"
EARLY = "Comments dated before 1990"
LATE = "Comments dated in the future"
IMAGES = "Comments with images, which became links"
EMBEDS = "Comments with videos or other embedded pages, which became links"
UNLINKED = "Comments in which a link without a valid http(s) address became text"
REMOVED = "Comments with scripts, styles, formulas or drawings, which were left out"

# Kinds that are counted by their text; their individual notes are not kept.
LEFT_OUT = "Left out"
CORRECTED = "Corrected"
MAPPED = "Mapped"
PRESENT = "Already on the website, not added again"
# The text of a `CORRECTED` remark.
NUL = "NUL characters, removed"

# The kinds that need no action and can have thousands of notes.
_IN_ONE_LINE = {
    CLOSED,
    OTHER_ITEMS,
    TWICE,
    RENUMBERED,
    BESIDE,
    EARLY,
    LATE,
    NAMELESS,
    LONG_NAMES,
    REPAIRED_NAMES,
    TEXT_IN_NAME,
    WEBSITES,
    EMPTY,
    IMAGES,
    EMBEDS,
    UNLINKED,
    REMOVED,
}


class Note(msgspec.Struct, frozen=True):
    """A note about one place in the file. The kind says how the import handles that place."""

    kind: str
    line: int
    text: str


class Tally(msgspec.Struct):
    """The number of items with the same remark, and the first lines that have it."""

    count: int = 0
    lines: list[int] = []


class ImportReport:
    """What the first pass finds in a file: the notes, and the tallies by kind and text.

    Remarks that can apply to every comment of a file are only counted, in `tallies`. `unit` names
    what the line numbers in notes count, such as "line". `statuses` counts the comments that will
    be stored, and `empty_pages` are the addresses of pages without comments.
    """

    def __init__(self, file: str, unit: str) -> None:
        self.file = file
        self.unit = unit
        self.notes: list[Note] = []
        self.tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
        self.statuses: Counter[str] = Counter()
        self.threads = 0
        self.empty_pages: tuple[str, ...] = ()

    @property
    def comments(self) -> int:
        """Return the number of comments that will be stored."""
        return self.statuses.total()

    def bad(self, line: int, message: str) -> errors.BadImport:
        """Return the error for an invalid place in the file."""
        return errors.BadImport(self.file, line, message, self.unit)

    def note(self, kind: str, line: int, text: str) -> None:
        """Note a place in the file."""
        self.notes.append(Note(kind, line, text))

    def count(self, kind: str, text: str, line: int, number: int = 1) -> None:
        """Count a remark for `number` items; with 0, the remark is only listed in the report."""
        tally = self.tallies[kind, text]
        tally.count += number
        if number and len(tally.lines) < _SUMMED:
            tally.lines.append(line)

    def lines(self) -> Iterator[str]:
        """Yield the report as text: totals, then the notes of each kind with their line numbers.

        Notes that may need attention are listed individually; all other notes are summarized by
        kind.
        """
        comments, threads = (
            quantity(self.comments, "comment"),
            quantity(self.threads, "thread"),
        )
        yield f"{self.file}: {comments} in {threads}."
        if self.statuses:
            yield ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        by_kind: dict[str, list[Note]] = defaultdict(list)
        for note in self.notes:
            by_kind[note.kind].append(note)
        for kind, notes in sorted(by_kind.items()):
            if kind in _IN_ONE_LINE:
                yield f"{kind}: {_summary(kind, notes, self.unit)}"
                continue
            yield f"{kind}: {len(notes)}"
            for note in notes[:_SHOWN]:
                yield f"  {self.unit} {note.line}: {_printable(note.text)}"
            if len(notes) > _SHOWN:
                yield f"  and {len(notes) - _SHOWN} more"
        for (kind, text), tally in sorted(self.tallies.items(), key=lambda each: each[0]):
            yield f"{kind}: {_printable(text)} ({_places(kind, tally, self.unit)})"


def _places(kind: str, tally: Tally, unit: str) -> str:
    if kind == LEFT_OUT:
        return str(tally.count)
    if not tally.count:
        return "no page with comments has this address"
    count = quantity(tally.count, "page") if kind == MAPPED else f"{tally.count}"
    return f"{count}, {_line_numbers(unit, tally.lines, tally.count)}"


def _summary(kind: str, notes: Sequence[Note], unit: str) -> str:
    """Return the number of notes, the types of other items, and the first line numbers."""
    sorts = Counter(note.text for note in notes).most_common() if kind == OTHER_ITEMS else []
    names = ", ".join(f"{count} {_printable(text)}" for text, count in sorts)
    lines = places(unit, [note.line for note in notes])
    return f"{len(notes)}{f' ({names})' if names else ''}, {lines}"


def _line_numbers(unit: str, first: Sequence[int], count: int) -> str:
    """Format the first line numbers of `count` notes."""
    places = ", ".join(map(str, first))
    return f"{unit}{'s' if count > 1 else ''} {places}{', ...' if count > _SUMMED else ''}"


def places(unit: str, numbers: Sequence[int]) -> str:
    """Format the first of several places in a file."""
    return _line_numbers(unit, numbers[:_SUMMED], len(numbers))


def _printable(text: str) -> str:
    """Make text from a file safe for a terminal: one line without escape sequences."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:_LONGEST])

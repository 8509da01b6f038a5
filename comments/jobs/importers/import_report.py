"""What an operator reads about an export before anything of it is stored."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

# Characters of a note. Exports hold what strangers typed.
_LONGEST = 300
# Notes of one kind that are shown; the rest is counted.
_SHOWN = 20
# The same of a kind that is told in one line.
_SUMMED = 3

# The kinds of notes, as they are shown.
MERGED = "Pages that become one thread"
ELSEWHERE = "Hosts that are not origins of the site"
NO_LINK = "Threads without a usable link, named by their id"
NO_NAME = "Threads without a usable link or id, left out with their comments"
DELETED = "Deleted threads, left out with their comments"
HIDDEN = "Pages that not everybody may read, their comments held"
NO_THREAD = "Comments of threads that are not in the file, left out"
REPEATED = "Ids that come twice, the second left out"
SKIPPED = "Not comments, left out"
ORPHANS = "Replies to comments that are not in the file, now roots"
UNROOTED = "Replies to what was left out, now roots"
CROSSING = "Replies to comments of other threads, now roots"
CYCLES = "Circles of replies, cut at the earliest comment"
NAMELESS = "Comments without a usable name, now a guest's"
WEBSITES = "Websites that are not http(s), dropped"
EMPTY = "Comments without text"

# What nobody can do anything about, and an export may have thousands of.
_IN_ONE_LINE = {SKIPPED, NAMELESS, WEBSITES, EMPTY}


class Note(msgspec.Struct, frozen=True):
    """Something to know about: which kind, where it is in the file, and what is done about it."""

    kind: str
    line: int
    text: str


class Report(msgspec.Struct, frozen=True):
    """The result of the first pass. `comments` will be stored, in `threads`; by `statuses`."""

    file: str
    comments: int
    threads: int
    statuses: Mapping[str, int]
    notes: tuple[Note, ...]

    def lines(self) -> Iterator[str]:
        """The report as text: totals, then each kind of note with its lines in the file.

        What somebody may want to look into is listed, the rest is summed up.
        """
        yield f"{self.file}: {self.comments} comments in {self.threads} threads."
        if self.statuses:
            yield ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        by_kind: dict[str, list[Note]] = defaultdict(list)
        for note in self.notes:
            by_kind[note.kind].append(note)
        for kind, notes in sorted(by_kind.items()):
            if kind in _IN_ONE_LINE:
                yield f"{kind}: {_summed(kind, notes)}"
                continue
            yield f"{kind}: {len(notes)}"
            for note in notes[:_SHOWN]:
                yield f"  line {note.line}: {_printable(note.text)}"
            if len(notes) > _SHOWN:
                yield f"  and {len(notes) - _SHOWN} more"


def _summed(kind: str, notes: Sequence[Note]) -> str:
    """How many there are, of what they are where that differs, and where the first ones stand."""
    sorts = Counter(note.text for note in notes).most_common(_SUMMED) if kind == SKIPPED else []
    names = ", ".join(f"{count} {_printable(text)}" for text, count in sorts)
    places = ", ".join(str(note.line) for note in notes[:_SUMMED])
    return (
        f"{len(notes)}{f' ({names})' if names else ''}, "
        f"line{'s' if len(notes) > 1 else ''} {places}{', ...' if len(notes) > _SUMMED else ''}"
    )


def _printable(text: str) -> str:
    """Text from a file as a terminal may show it: one line, no escape sequences."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:_LONGEST])

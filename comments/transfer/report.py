"""What an operator reads about an export before anything of it is stored."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

import msgspec

# Notes of one kind that are shown; the rest is counted.
_SHOWN = 20


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

    def count(self, kind: str) -> int:
        """How many notes of a kind there are."""
        return sum(note.kind == kind for note in self.notes)

    def lines(self) -> Iterator[str]:
        """The report as text: totals, then each kind of note with its lines in the file."""
        yield f"{self.file}: {self.comments} comments in {self.threads} threads."
        if self.statuses:
            yield ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        by_kind: dict[str, list[Note]] = defaultdict(list)
        for note in self.notes:
            by_kind[note.kind].append(note)
        for kind, notes in sorted(by_kind.items()):
            yield f"{kind}: {len(notes)}"
            for note in notes[:_SHOWN]:
                yield f"  line {note.line}: {note.text}"
            if len(notes) > _SHOWN:
                yield f"  and {len(notes) - _SHOWN} more"

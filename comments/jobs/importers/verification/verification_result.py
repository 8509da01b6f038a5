"""Collect what a verification finds: totals, and the differences by field and reason."""

from collections.abc import Mapping

import msgspec

from comments.jobs.importers.verification.comment_comparison import FieldDifference

# The maximum number of examples that are kept of the differences of one field for one reason.
EXAMPLES = 20


class ContentTotals(msgspec.Struct, frozen=True):
    """The comments of a file, or those that the store has of them.

    `depth` counts replies to replies: a root has depth 1. `texts` is a digest of the comments' ids
    and HTML in the order of the file.
    """

    comments: int
    threads: int
    authors: int
    depth: int
    texts: str


class ImportDifference(msgspec.Struct, frozen=True):
    """A difference. `comment` and `source` are "" for a difference of a thread.

    `comment` is the id of the comment here, and `source` is its id in the file, at `line`.
    """

    thread: str
    comment: str
    source: str
    line: int
    stored: object
    expected: object


class DifferenceGroup(msgspec.Struct, frozen=True):
    """The differences of one field for one reason, which is "" if none is known."""

    field: str
    reason: str
    count: int
    examples: tuple[ImportDifference, ...]


class Verification(msgspec.Struct, frozen=True):
    """The result of a verification.

    `left_out` counts what the import leaves out of the file, by kind. `other_comments` and
    `other_threads` are those of the site that are not in the file; posts, for example.
    `is_unfinished` tells whether the import of the file has begun but not ended.
    """

    file: str
    site: str
    unit: str
    in_file: ContentTotals
    in_store: ContentTotals
    differences: tuple[DifferenceGroup, ...]
    left_out: Mapping[str, int]
    other_comments: int
    other_threads: int
    is_unfinished: bool = False

    @property
    def explained(self) -> int:
        """Return the number of differences with a known reason."""
        return sum(group.count for group in self.differences if group.reason)

    @property
    def unexplained(self) -> int:
        """Return the number of differences without a known reason."""
        return sum(group.count for group in self.differences if not group.reason)


class DifferenceGroups:
    """Groups differences while they are found, and keeps a few examples of each group."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._examples: dict[tuple[str, str], list[ImportDifference]] = {}

    def add(self, found: FieldDifference, where: ImportDifference) -> None:
        """Add a difference. `where` contains its place; its values are taken from `found`."""
        key = (found.field, found.reason)
        self._counts[key] = self._counts.get(key, 0) + 1
        examples = self._examples.setdefault(key, [])
        if len(examples) < EXAMPLES:
            examples.append(
                msgspec.structs.replace(where, stored=found.stored, expected=found.expected)
            )

    def found(self) -> tuple[DifferenceGroup, ...]:
        """Return the groups, those without a reason first."""
        return tuple(
            DifferenceGroup(field, reason, count, tuple(self._examples[field, reason]))
            for (field, reason), count in sorted(
                self._counts.items(), key=lambda each: (bool(each[0][1]), each[0])
            )
        )

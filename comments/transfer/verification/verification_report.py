"""The result of a verification: totals, differences by field and reason, and a text report."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import msgspec

from comments.domain.text import shown_values
from comments.domain.text.shown_values import quantity
from comments.transfer.verification.comment_comparison import MISSING

# The maximum number of examples kept per field and reason.
EXAMPLES = 20


class ContentTotals(msgspec.Struct, frozen=True):
    """The totals of the comments in a file, or of those comments in the store.

    `texts` is a digest of the comments' ids and HTML in the order of the file.
    """

    comments: int
    threads: int
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
    """The differences of one field for one reason; the reason is "" if it is unknown."""

    field: str
    reason: str
    count: int
    examples: tuple[ImportDifference, ...]


class Verification(msgspec.Struct, frozen=True):
    """The result of a verification.

    `left_out` counts, by kind, the content of the file that the import does not take over.
    `other_comments` and `other_threads` are the numbers of the site's comments and threads that are
    not in the file, such as new posts. `is_unfinished` tells whether the import of the file has
    begun but not ended.
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
    def explained_count(self) -> int:
        """Return the number of differences with a known reason."""
        return sum(group.count for group in self.differences if group.reason)

    @property
    def unexplained_count(self) -> int:
        """Return the number of differences without a known reason."""
        return sum(group.count for group in self.differences if not group.reason)


class DifferenceGroups:
    """Groups differences as they are found, and keeps a few examples of each group."""

    def __init__(self) -> None:
        self._counts = Counter[tuple[str, str]]()
        self._examples: dict[tuple[str, str], list[ImportDifference]] = defaultdict(list)

    def add(self, field: str, reason: str, found: ImportDifference) -> None:
        """Add a difference of a field."""
        self._counts[field, reason] += 1
        examples = self._examples[field, reason]
        if len(examples) < EXAMPLES:
            examples.append(found)

    def refute(self, reason: str) -> None:
        """Make the differences with this reason unexplained."""
        for field in [field for field, known in self._counts if known == reason]:
            self._counts[field, ""] += self._counts.pop((field, reason))
            examples = self._examples[field, ""] + self._examples.pop((field, reason))
            self._examples[field, ""] = examples[:EXAMPLES]

    def groups(self) -> tuple[DifferenceGroup, ...]:
        """Return the groups; groups without a reason come first."""
        return tuple(
            DifferenceGroup(*key, count, tuple(self._examples[key]))
            for key, count in sorted(
                self._counts.items(), key=lambda each: (bool(each[0][1]), each[0])
            )
        )


_DIGEST = 12  # Number of characters of a digest that are shown
_TOTALS = ("comments", "threads", "texts")


def lines(found: Verification) -> Iterator[str]:
    """Yield the totals, the differences, and a conclusion."""
    yield f"{'':10} {'file':>12} {'store':>12}"
    for name in _TOTALS:
        file, store = getattr(found.in_file, name), getattr(found.in_store, name)
        yield f"{name:10} {_total(file):>12} {_total(store):>12}"
    for group in found.differences:
        is_open = found.is_unfinished and group.field in {MISSING, "thread"}
        unknown = "the import was interrupted" if is_open else "no known reason"
        yield f"{group.field}: {group.count}, {group.reason or unknown}"
        for example in group.examples if not group.reason else group.examples[:1]:
            yield f"  {_place(example, found.unit)}: {_values(group.field, example)}"
        if not group.reason and group.count > len(group.examples):
            yield f"  and {group.count - len(group.examples)} more"
    for what, count in found.left_out.items():
        yield f"Left out: {what} ({count})"
    if found.other_comments or found.other_threads:
        comments = quantity(found.other_comments, "other comment")
        threads = quantity(found.other_threads, "other thread")
        yield f"The site also has {comments} and {threads}, which are not in the file."
    yield conclusion(found)


def outcome(found: Verification) -> Iterator[str]:
    """Yield the report after an import: one line, or everything if something differs."""
    if found.differences:
        yield from lines(found)
    else:
        yield conclusion(found)


def conclusion(found: Verification) -> str:
    """Say in one line whether the store contains the comments of the file unchanged."""
    count = quantity(found.in_file.comments, "comment")
    if found.is_unfinished and found.unexplained_count:
        return (
            "The import of this file was interrupted: run the same command again, then verify it."
        )
    if found.unexplained_count:
        differences = quantity(found.unexplained_count, "difference")
        return f"{differences} between the file and the store have no known reason."
    if found.explained_count:
        differences = quantity(found.explained_count, "difference")
        return f"Verified {count}: {differences}, all with a known reason."
    return f"Verified {count}: the store matches the file."


def _total(value: int | str) -> str:
    return value[:_DIGEST] if isinstance(value, str) else f"{value:,}"


def _place(example: ImportDifference, unit: str) -> str:
    comment = f", comment {example.source} in {unit} {example.line}" if example.source else ""
    return f"{example.thread}{comment}"


def _values(field: str, example: ImportDifference) -> str:
    if example.stored is None and field in {MISSING, "thread"}:
        return "is not stored"
    stored = shown_values.show(example.stored, example.expected)
    expected = shown_values.show(example.expected, example.stored)
    return f"{field} is {stored}, in the file {expected}"

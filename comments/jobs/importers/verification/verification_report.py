"""Report the result of a verification as text, for operators."""

from collections.abc import Iterator

from comments.domain.text import shown_values
from comments.jobs.importers.checking.import_report import counted
from comments.jobs.importers.verification.comment_comparison import MISSING
from comments.jobs.importers.verification.verification_result import (
    ImportDifference,
    Verification,
)

_DIGEST = 12  # characters of a digest that are shown
_TOTALS = ("comments", "threads", "authors", "depth", "texts")


def lines(found: Verification) -> Iterator[str]:
    """Yield the totals, the differences, and what they mean."""
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
        comments = counted(found.other_comments, "other comment")
        threads = counted(found.other_threads, "other thread")
        yield f"The site also has {comments} and {threads}, which are not in the file."
    yield conclusion(found)


def outcome(found: Verification) -> Iterator[str]:
    """Yield what an import reports: one line, or everything if something differs."""
    if found.differences:
        yield from lines(found)
    else:
        yield conclusion(found)


def conclusion(found: Verification) -> str:
    """Say in one line whether the store has what the file has."""
    count = counted(found.in_file.comments, "comment")
    if found.is_unfinished and found.unexplained:
        return (
            "The import of this file was interrupted: run the same command again, then verify it."
        )
    if found.unexplained:
        differences = counted(found.unexplained, "difference")
        return f"{differences} between the file and the store have no known reason."
    if found.explained:
        differences = counted(found.explained, "difference")
        return f"Verified {count}: {differences}, all with a known reason."
    return f"Verified {count}: the store matches the file."


def _total(value: int | str) -> str:
    return value[:_DIGEST] if isinstance(value, str) else f"{value:,}"


def _place(example: ImportDifference, unit: str) -> str:
    comment = f", comment {example.source} in {unit} {example.line}" if example.source else ""
    return f"{example.thread}{comment}"


def _values(field: str, example: ImportDifference) -> str:
    if example.stored is None and example.expected is None:
        return "not compared"
    if example.stored is None and field in {MISSING, "thread"}:
        return "is not stored"
    stored = shown_values.shown(example.stored, example.expected)
    expected = shown_values.shown(example.expected, example.stored)
    return f"{field} is {stored}, in the file {expected}"

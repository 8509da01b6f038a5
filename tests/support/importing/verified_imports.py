"""Verify the import of a sample export, and read which differences were found and why."""

from datetime import timedelta

from comments.domain import records
from comments.store import transactions
from comments.transfer.checking import checked_import
from comments.transfer.verification import import_verification, verification_report
from comments.tree import changes
from tests.support.threads import raw_changes
from tests.support.threads.sample_exports import NOW, SECRET, rows

LATER = NOW + timedelta(days=1)
ACTOR = records.Actor("cli", "Ann")


def verify(plan: checked_import.CheckedImport) -> verification_report.Verification:
    return import_verification.verify(plan, secret=SECRET)


def named(
    found: verification_report.Verification, *, explained: bool = False
) -> set[tuple[str, str]]:
    """Return the source ids and fields of differences that have a reason, or have none."""
    return {
        (each.source, group.field)
        for group in found.differences
        for each in group.examples
        if bool(group.reason) is explained
    }


def reasons(found: verification_report.Verification) -> dict[str, set[str]]:
    """Return the reasons of differences by field."""
    known: dict[str, set[str]] = {}
    for group in found.differences:
        known.setdefault(group.field, set()).add(group.reason)
    return known


def stored(plan: checked_import.CheckedImport, source: str) -> records.Comment:
    return next(row for row in rows() if row.id == plan.id_of(source))


def retract(comment_id: str) -> None:
    """Retract a comment as its author does."""
    transactions.transaction(
        lambda: transactions.apply(
            *changes.retract(comment_id, now=LATER, check=lambda _: None).writes
        )
    )


def exchange(one: records.Comment, other: records.Comment) -> None:
    """Give each of two siblings the place of the other."""
    for row, place in ((one, other), (other, one)):
        raw_changes.comment(row.id, number=place.number, sort_hash=place.sort_hash, slug=place.slug)

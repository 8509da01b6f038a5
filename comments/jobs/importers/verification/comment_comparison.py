"""Compare a comment as its file has it with the comment as it is stored (pure).

A stored comment may differ because of what people did here since the import: they edit, vote,
moderate and retract. The row shows this: each such change raises the revision, an edit sets
`edited`, a decision sets `judged`, and the votes cast here are counted apart from the imported
ones. A row that changed in another way has a difference without a reason.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from comments.domain import author_ids, records
from comments.domain.records import Status
from comments.jobs.importers.verification.stored_comments import StoredComment

# Why a stored value differs from the file. "" stands for no known reason.
EDITED = "edited here"
MODERATED = "moderated here"
ERASED = "retracted by the author, or erased after its retention period"
VOTED = "voted on here"
CONVERTED = "converted to HTML by another release"
OTHER_KEY = "author ids made with another secret"
UNDONE = "the import was undone"
EARLIER_FILE = "imported before, from another file"
EXISTED_HERE = "the comment existed before the import"
ADDED_LATER = "added by a later import, after its siblings"
ADDED_APART = "in the order of several imports, whose journals were deleted after their term"
RESHAPED = "moved by a change of the site's scheme"
MOVING = "not compared, because the site's scheme was being changed"
NAMED_HERE = "named by a comment that is not in the file"
NOT_APPROVED = "no longer named, because none of its comments in the file is approved here"
OLDER_RELEASE = "stored by an older release"
EXISTED = "the thread existed before the import"
EXPIRED = "erased after its term, or not stored by an older release"
PIN_LIMIT = "a thread has at most 3 pinned comments"

_NONE, _SOME, _OTHER = "none", "one", "another one"  # what a report shows of mail addresses
AddressOf = Callable[[str], str]
MISSING = "comment"  # the field of a comment that is not stored


class FieldDifference(NamedTuple):
    """A field whose stored value is not the one in the file. `reason` is "" if none is known."""

    field: str
    stored: object
    expected: object
    reason: str = ""


def differences(
    planned: records.ImportedComment,
    stored: StoredComment,
    *,
    first_revision: int = 1,
    address_of: AddressOf | None = None,
) -> Iterator[FieldDifference]:
    """Yield the fields that differ, except for the place in the tree and the pin.

    `first_revision` is the revision with which the import stored the comment. Without
    `address_of`, which decrypts addresses, they are not compared.
    """
    row = stored.row
    # An import stores an approved comment once. It may change another comment once more, when it
    # adds a reply that readers see.
    changes = 0 if planned.status is Status.APPROVED else 1
    is_changed = row.revision > first_revision + changes
    yield from _unequal(
        ("created", stored.created, planned.created), ("reply_to", row.reply_to, planned.reply_to)
    )
    if is_changed and _is_erased(planned, stored):
        yield FieldDifference("status", stored.status, planned.status.value, ERASED)
        yield from _left_after_erasure(row)
        return
    if stored.status != planned.status:
        reason = MODERATED if is_changed and stored.judged is not None else ""
        yield FieldDifference("status", stored.status, planned.status.value, reason)
    yield from _text(planned, stored, is_changed=is_changed)
    yield from _unequal(
        ("author name", row.author.name, planned.author.name),
        ("author website", row.author.website, planned.author.website),
        ("author id", row.author.id, planned.author.id),
    )
    if address_of is not None:
        yield from _address(planned.author, row.author, address_of)
    yield from _votes(planned, stored, is_changed=is_changed)


def has_other_secret(found: FieldDifference) -> bool:
    """Return whether a difference may be explained by a change of the service's secret."""
    return (
        found.field == "author id"
        and not found.reason
        and str(found.stored).startswith(author_ids.IMPORTED)
    )


def _unequal(*fields: tuple[str, object, object]) -> Iterator[FieldDifference]:
    return (FieldDifference(*each) for each in fields if each[1] != each[2])


def _is_erased(planned: records.ImportedComment, stored: StoredComment) -> bool:
    return (
        stored.status == Status.RETRACTED
        and planned.status is not Status.RETRACTED
        and stored.row.edited != planned.edited
    )


def _left_after_erasure(row: records.Comment) -> Iterator[FieldDifference]:
    yield from _unequal(
        ("text", row.body, ""),
        ("html", row.html, ""),
        ("author name", row.author.name, ""),
        ("author website", row.author.website, ""),
        ("author id", row.author.id, ""),
        ("address", _SOME if row.author.email else _NONE, _NONE),
        ("votes", (row.up, row.down, row.score), (0, 0, 0)),
    )


def _text(
    planned: records.ImportedComment, stored: StoredComment, *, is_changed: bool
) -> Iterator[FieldDifference]:
    row = stored.row
    is_edited = (
        is_changed
        and row.edited is not None
        and (planned.edited is None or row.edited > planned.edited)
    )
    reason = EDITED if is_edited else ""
    if row.body != planned.body:
        yield FieldDifference("text", row.body, planned.body, reason)
    elif row.html != planned.html:
        is_converted = not reason and _is_other_version(planned.renderer, stored.renderer)
        yield FieldDifference("html", row.html, planned.html, CONVERTED if is_converted else reason)
    if row.edited != planned.edited:
        yield FieldDifference("edited", row.edited, planned.edited, reason)


def _is_other_version(planned: str, stored: str) -> bool:
    """Return whether another version of the same renderer made the stored HTML."""
    kind, _, version = planned.partition("-")
    stored_kind, _, stored_version = stored.partition("-")
    return kind == stored_kind and stored_version.isdigit() and version != stored_version


def _address(
    planned: records.Author, stored: records.Author, address_of: AddressOf
) -> Iterator[FieldDifference]:
    """Compare the mail addresses, which no report shows."""
    given, kept = address_of(planned.email), address_of(stored.email)
    if given == kept and bool(given) == bool(stored.email):
        return
    value = (_OTHER if given else _SOME) if stored.email else _NONE
    # An address that was encrypted with another secret cannot be read.
    has_other_id = stored.id.startswith(author_ids.IMPORTED) and stored.id != planned.id
    reason = OTHER_KEY if has_other_id and stored.email and not kept else ""
    yield FieldDifference("address", value, _SOME if given else _NONE, reason)


def _votes(
    planned: records.ImportedComment, stored: StoredComment, *, is_changed: bool
) -> Iterator[FieldDifference]:
    row = stored.row
    votes, expected = (row.up, row.down), (planned.up, planned.down)
    imported = (row.up - stored.cast_up, row.down - stored.cast_down)
    # An export of Flatthread contains single votes, which are stored like those cast here.
    cast = [value for _, value in planned.kept.votes] if planned.kept is not None else []
    others = (planned.up - cast.count(1), planned.down - cast.count(-1))
    if imported != others or row.score != row.up - row.down:
        score = planned.up - planned.down
        yield FieldDifference("votes", (*votes, row.score), (*expected, score))
    elif votes != expected:
        yield FieldDifference("votes", votes, expected, VOTED if is_changed else "")

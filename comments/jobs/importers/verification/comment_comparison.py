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
MISSING = "comment"  # the field of a comment that is not stored


class FieldDifference(NamedTuple):
    """A field whose stored value is not the one in the file. `reason` is "" if none is known."""

    field: str
    stored: object
    expected: object
    reason: str = ""


class CommentEvidence(NamedTuple):
    """What is known of an import: the first revision of its comments, and how to read addresses.

    Without `address_of`, addresses are not compared.
    """

    first_revision: int = 1
    address_of: Callable[[str], str] | None = None

    def is_changed(self, planned: records.ImportedComment, stored: StoredComment) -> bool:
        """Return whether the service has changed a comment since its import.

        An import stores an approved comment once. It may change another comment once more, when it
        adds a reply that readers see.
        """
        changes = 0 if planned.status is Status.APPROVED else 1
        return stored.revision > self.first_revision + changes


def differences(
    planned: records.ImportedComment, stored: StoredComment, evidence: CommentEvidence
) -> Iterator[FieldDifference]:
    """Yield the fields that differ, except for the place in the tree and the pin."""
    is_changed = evidence.is_changed(planned, stored)
    yield from _identity(planned, stored)
    if is_changed and _is_erased(planned, stored):
        yield FieldDifference("status", stored.status, planned.status.value, ERASED)
        yield from _left_after_erasure(stored)
        return
    if stored.status != planned.status:
        was_judged = is_changed and stored.judged is not None
        yield FieldDifference(
            "status", stored.status, planned.status.value, MODERATED if was_judged else ""
        )
    yield from _text(planned, stored, is_changed=is_changed)
    yield from _author(planned, stored)
    if evidence.address_of is not None:
        yield from _address(planned, stored, evidence.address_of)
    yield from _votes(planned, stored, is_changed=is_changed)


def has_other_secret(found: FieldDifference) -> bool:
    """Return whether a difference may be explained by a change of the service's secret."""
    return (
        found.field == "author id"
        and not found.reason
        and str(found.stored).startswith(author_ids.IMPORTED)
    )


def _identity(planned: records.ImportedComment, stored: StoredComment) -> Iterator[FieldDifference]:
    if stored.created != planned.created:
        yield FieldDifference("created", stored.created, planned.created)
    if stored.reply_to != planned.reply_to:
        yield FieldDifference("reply_to", stored.reply_to, planned.reply_to)


def _is_erased(planned: records.ImportedComment, stored: StoredComment) -> bool:
    return (
        stored.status == Status.RETRACTED
        and planned.status is not Status.RETRACTED
        and stored.edited != planned.edited
    )


def _left_after_erasure(stored: StoredComment) -> Iterator[FieldDifference]:
    left = {
        "text": stored.body,
        "html": stored.html,
        "author name": stored.author_name,
        "author website": stored.author_website,
        "author id": stored.author_id,
    }
    yield from (FieldDifference(field, value, "") for field, value in left.items() if value)
    if stored.author_email:
        yield FieldDifference("address", _SOME, _NONE)
    if stored.up or stored.down or stored.score:
        yield FieldDifference("votes", (stored.up, stored.down, stored.score), (0, 0, 0))


def _text(
    planned: records.ImportedComment, stored: StoredComment, *, is_changed: bool
) -> Iterator[FieldDifference]:
    is_edited = (
        is_changed
        and stored.edited is not None
        and (planned.edited is None or stored.edited > planned.edited)
    )
    reason = EDITED if is_edited else ""
    if stored.body != planned.body:
        yield FieldDifference("text", stored.body, planned.body, reason)
    elif stored.html != planned.html:
        reason = reason or (CONVERTED if _is_other_version(planned, stored) else "")
        yield FieldDifference("html", stored.html, planned.html, reason)
    if stored.edited != planned.edited:
        yield FieldDifference("edited", stored.edited, planned.edited, EDITED if is_edited else "")


def _is_other_version(planned: records.ImportedComment, stored: StoredComment) -> bool:
    """Return whether another version of the same renderer made the stored HTML."""
    kind, _, version = planned.renderer.partition("-")
    stored_kind, _, stored_version = stored.renderer.partition("-")
    return kind == stored_kind and stored_version.isdigit() and version != stored_version


def _author(planned: records.ImportedComment, stored: StoredComment) -> Iterator[FieldDifference]:
    for field, value, expected in (
        ("author name", stored.author_name, planned.author.name),
        ("author website", stored.author_website, planned.author.website),
        ("author id", stored.author_id, planned.author.id),
    ):
        if value != expected:
            yield FieldDifference(field, value, expected)


def _address(
    planned: records.ImportedComment, stored: StoredComment, address_of: Callable[[str], str]
) -> Iterator[FieldDifference]:
    """Compare the mail addresses, which no report shows."""
    given, kept = address_of(planned.author.email), address_of(stored.author_email)
    if given == kept and bool(given) == bool(stored.author_email):
        return
    value = (_OTHER if given else _SOME) if stored.author_email else _NONE
    # An address that was encrypted with another secret cannot be read.
    is_other_key = not kept and bool(stored.author_email) and _has_other_id(planned, stored)
    reason = OTHER_KEY if is_other_key else ""
    yield FieldDifference("address", value, _SOME if given else _NONE, reason)


def _has_other_id(planned: records.ImportedComment, stored: StoredComment) -> bool:
    is_imported = stored.author_id.startswith(author_ids.IMPORTED)
    return is_imported and stored.author_id != planned.author.id


def _votes(
    planned: records.ImportedComment, stored: StoredComment, *, is_changed: bool
) -> Iterator[FieldDifference]:
    votes = (stored.up, stored.down)
    imported = (stored.up - stored.cast_up, stored.down - stored.cast_down)
    expected = (planned.up, planned.down)
    # An export of Flatthread contains single votes, which are stored like those cast here.
    cast = [value for _, value in planned.kept.votes] if planned.kept is not None else []
    others = (planned.up - cast.count(1), planned.down - cast.count(-1))
    if imported != others or stored.score != stored.up - stored.down:
        yield FieldDifference(
            "votes", (*votes, stored.score), (*expected, planned.up - planned.down)
        )
    elif votes != expected:
        reason = VOTED if is_changed else ""
        yield FieldDifference("votes", votes, expected, reason)

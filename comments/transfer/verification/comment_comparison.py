"""Compare a comment in a file with the stored comment (pure).

A stored comment may differ because people have edited it, voted on it, moderated it or retracted it
since the import. The row shows such changes: each of them raises the revision, an edit sets
`edited`, a decision sets `judged`, and votes cast after the import are counted separately from the
imported votes. If a row differs in any other way, the difference has no known reason.

Derived fields, such as the place in the tree, are not compared here; `repair` checks them.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from comments.domain import records
from comments.domain.ids import author_ids
from comments.domain.records import Status
from comments.store.models import comment_rows
from comments.transfer.verification.stored_comments import StoredComment

# Reasons why a stored value differs from the value in the file. "" means that no reason is known.
EDITED = "edited here"
MODERATED = "moderated here"
ERASED = "retracted by the author, or erased after its retention period"
CONVERTED = "converted to HTML by another release"
OTHER_KEY = "author ids made with another secret"
UNDONE = "the import was undone"
EARLIER = "the comment existed before the import, or came from another file"
REORDERED = "added by several imports, or moved by a change of the site's scheme"
NAMED_HERE = "named by a comment of another import, or by one that is not in the file"
NOT_APPROVED = "no longer named, because none of its comments in the file is approved here"
OLDER_RELEASE = "stored by an older release"
EXISTED = "no journal says that the import made the thread"
EXPIRED = "erased after its term, or not stored by an older release"
PIN_LIMIT = "a thread has at most 3 pinned comments"

_NONE, _SOME, _OTHER = "none", "one", "another one"  # Shown in reports instead of mail addresses
AddressOf = Callable[[str], str]
MISSING = "comment"  # Field name for a comment that is not stored
AUTHOR_ID = "author id"


class FieldDifference(NamedTuple):
    """A field whose stored value is not the one in the file.

    `reason` is "" if the reason is unknown.
    """

    field: str
    stored: object
    expected: object
    reason: str = ""


def differences(
    thread: records.ThreadName,
    planned: records.ImportedComment,
    stored: StoredComment,
    *,
    first_revision: int,
    address_of: AddressOf | None,
) -> Iterator[FieldDifference]:
    """Yield the fields that differ, except for the order among siblings and the pin.

    `first_revision` is the revision with which the import stored the comment. `address_of` decrypts
    addresses; without it, addresses are not compared.
    """
    row = stored.row
    # An import writes an approved comment only once. The import may change any other comment once
    # more, when it adds a reply that readers see.
    changes = 0 if planned.status is Status.APPROVED else 1
    is_changed = row.revision > first_revision + changes
    reasons = _reasons(planned, stored) if is_changed else {}
    if is_changed and _is_erased(planned, stored):
        yield FieldDifference("status", stored.status, planned.status.value, ERASED)
        planned, reasons = _retraction_of(planned, stored), {}
    if _is_converted(planned, stored):
        reasons.setdefault("html", CONVERTED)
    for field, (value, expected) in _pairs(thread, planned, stored).items():
        if value != expected:
            yield FieldDifference(field, value, expected, reasons.get(field, ""))
    yield from _votes(planned, stored, is_changed=is_changed)
    if address_of is not None:
        yield from _address(planned.author, row.author, address_of)


def _pairs(
    thread: records.ThreadName, planned: records.ImportedComment, stored: StoredComment
) -> dict[str, tuple[object, object]]:
    """Return the stored value and the expected value of each field."""
    row, author = stored.row, planned.author
    is_elsewhere = stored.thread_key != comment_rows.thread_key_name(thread)
    is_contradictory = is_elsewhere and row.thread == thread.id
    return {
        "site": (row.site, thread.site),
        "thread": (stored.thread_key if is_contradictory else row.thread, thread.id),
        "created": (stored.created, planned.created),
        "reply_to": (row.reply_to, planned.reply_to),
        "status": (stored.status, planned.status.value),
        "text": (row.body, planned.body),
        "html": (row.html, planned.html),
        "edited": (row.edited, planned.edited),
        "author name": (row.author.name, author.name),
        "author website": (row.author.website, author.website),
        AUTHOR_ID: (row.author.id, author.id),
    }


def _reasons(planned: records.ImportedComment, stored: StoredComment) -> dict[str, str]:
    """Return the reasons for differences in a comment that people have changed, by field."""
    edited = stored.row.edited
    is_edited = edited is not None and (planned.edited is None or edited > planned.edited)
    reasons = dict.fromkeys(("text", "html", "edited"), EDITED) if is_edited else {}
    return reasons | ({"status": MODERATED} if stored.judged is not None else {})


def _is_erased(planned: records.ImportedComment, stored: StoredComment) -> bool:
    return (
        stored.status == Status.RETRACTED
        and planned.status is not Status.RETRACTED
        and stored.row.edited != planned.edited
    )


def _retraction_of(
    planned: records.ImportedComment, stored: StoredComment
) -> records.ImportedComment:
    """Return the values that a comment has after its retraction."""
    return msgspec.structs.replace(
        planned,
        status=Status.RETRACTED,
        body="",
        html="",
        author=records.Author(""),
        edited=stored.row.edited,
        up=0,
        down=0,
        kept=None,
    )


def _is_converted(planned: records.ImportedComment, stored: StoredComment) -> bool:
    """Return whether a different version of the same renderer made the stored HTML."""
    kind, _, version = planned.renderer.partition("-")
    stored_kind, _, stored_version = stored.renderer.partition("-")
    is_other = kind == stored_kind and stored_version.isdigit() and version != stored_version
    return is_other and stored.row.body == planned.body


def _votes(
    planned: records.ImportedComment, stored: StoredComment, *, is_changed: bool
) -> Iterator[FieldDifference]:
    """Compare the imported votes. Votes cast later may differ only if the revision has changed."""
    row = stored.row
    # An export of Flatthread contains single votes, which are stored like votes cast here.
    cast = [] if planned.kept is None else [value for _, value in planned.kept.votes]
    others = (planned.up - cast.count(1), planned.down - cast.count(-1))
    imported = (row.up - stored.cast_up, row.down - stored.cast_down)
    votes, expected = (row.up, row.down), (planned.up, planned.down)
    is_unexplained = votes != expected and not is_changed
    if is_unexplained or imported != others or row.score != row.up - row.down:
        score = planned.up - planned.down
        yield FieldDifference("votes", (*votes, row.score), (*expected, score))


def _address(
    planned: records.Author, stored: records.Author, address_of: AddressOf
) -> Iterator[FieldDifference]:
    """Compare the mail addresses without showing them in the difference."""
    given, kept = address_of(planned.email), address_of(stored.email)
    if given == kept and bool(given) == bool(stored.email):
        return
    value = (_OTHER if given else _SOME) if stored.email else _NONE
    # An address that was encrypted with another secret cannot be read.
    has_other_id = stored.id.startswith(author_ids.IMPORTED) and stored.id != planned.id
    reason = OTHER_KEY if has_other_id and stored.email and not kept else ""
    yield FieldDifference("address", value, _SOME if given else _NONE, reason)

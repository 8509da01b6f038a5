"""Describe the users in an export that lists them separately from the comments (pure)."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from comments.transfer import import_source
from comments.transfer.parsing.record_fields import Fields

MISSING = "comments whose author is not in the file, imported without the author"


class ListedUser(NamedTuple):
    """A user to whom comments refer by an id.

    `account` is empty if only the name identifies the user. `corrections` are the corrections that
    were needed to read the user. The report counts them again for each of the user's comments,
    because it gives places by comment.
    """

    name: str = ""
    email: str = ""
    website: str = ""
    account: str = ""
    corrections: tuple[str, ...] = ()


def corrections(fields: Fields) -> tuple[str, ...]:
    """Return what was corrected in a user's record."""
    return tuple(
        remark.what for remark in fields.remarks if isinstance(remark, import_source.Corrected)
    )


def omissions(fields: Fields) -> Iterator[import_source.LeftOut]:
    """Yield the data in a user's record that is not imported."""
    return (remark for remark in fields.remarks if isinstance(remark, import_source.LeftOut))


def author(comment: Fields, key: str | None, users: Mapping[str, ListedUser]) -> ListedUser:
    """Return the author of a comment that refers to the user `key`; None means a guest."""
    if key is None:
        return ListedUser()
    user = users.get(key)
    if user is None:
        comment.note_correction(MISSING)
        return ListedUser(account=key)
    for what in user.corrections:
        comment.note_correction(what)
    return user

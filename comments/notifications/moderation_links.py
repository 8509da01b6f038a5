"""Make and read moderation links, which let a moderator decide about a comment from a mail.

This module owns the content and validity of these links. A link is encrypted for this purpose only:

    encrypted [site, comment id, revision, keyed digest of the address]

A link names the revision that the mail was about, and has no effect if the comment has since been
edited or moderated. A link also names the moderator to whom it was mailed. It becomes void when
that person is no longer a moderator of the site. Opening a link changes nothing; only a POST may
call `act`.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from comments import errors
from comments.accounts import accounts
from comments.domain import decoders, records
from comments.domain.crypto import encryption, keyed_hashes
from comments.domain.records import Verb
from comments.moderation import decisions
from comments.sites import site_settings

TERM = timedelta(days=7)
VERBS = (Verb.APPROVE, Verb.REJECT, Verb.SPAM)
_PURPOSE = "decide"
_MAIL = "mail"


class ModerationLink(msgspec.Struct, frozen=True, array_like=True):
    """The content of a link. `moderator` is a digest of the moderator's address."""

    site: str
    comment: str
    revision: int
    moderator: str


def link(comment: records.Comment, address: str, *, secret: str, now: datetime) -> str:
    """Make the token for a moderator's link."""
    made = ModerationLink(comment.site, comment.id, comment.revision, _moderator(address, secret))
    return encryption.seal(msgspec.json.encode(made).decode(), _PURPOSE, secret, now=now)


def read(token: str, *, secret: str, now: datetime) -> ModerationLink:
    """Decrypt a link.

    Raises:
        errors.BadLink: the link is invalid or has expired, or its recipient is no longer a
            moderator.
    """
    text = encryption.unseal(token, _PURPOSE, secret, now=now, term=TERM)
    decoded = decoders.json(ModerationLink).decode(text)
    if decoded.moderator not in _moderators(decoded.site, secret, now):
        raise errors.BadLink("link-revoked")
    return decoded


def case(opened: ModerationLink) -> records.Case:
    """Return the current state of a link's comment.

    Raises:
        errors.NotFound: the comment no longer exists.
    """
    return decisions.case(opened.site, opened.comment)


def is_current(opened: ModerationLink, found: records.Case) -> bool:
    """Return whether the comment is unchanged since the mail, except for votes."""
    return found.comment.has_text_of(opened.revision)


def act(opened: ModerationLink, verb: Verb, *, now: datetime) -> records.Comment:
    """Apply a moderator's decision to a link's comment. Repeating the call changes nothing.

    Raises:
        errors.BadInput: links do not allow this verb.
        errors.RevisionMismatch: the comment has been edited or moderated since the mail.
        errors.Conflict: the comment's author retracted it.
    """
    if verb not in VERBS:
        raise errors.BadInput("verb", "unknown-value", allowed=", ".join(VERBS))
    actor = records.Actor(_MAIL, f"by mail, {opened.moderator[:6]}")
    return decisions.decide(
        opened.site, opened.comment, verb, actor, now=now, revision=opened.revision
    )


def _moderators(site: str, secret: str, now: datetime) -> Iterator[str]:
    try:
        recipients = site_settings.get(site).recipients
    except errors.NotFound:
        return
    for recipient in recipients:
        address = accounts.recipient_address(site, recipient, secret=secret, now=now)
        if address:
            made = keyed_hashes.every(secret, "moderator", address.lower())
            yield from map(keyed_hashes.text, made)


def _moderator(address: str, secret: str) -> str:
    return keyed_hashes.text(keyed_hashes.keyed_digest(secret, "moderator", address.lower()))

"""Moderation links: links in mail by which a moderator decides about one comment.

Owns what such a link holds and for how long. It is sealed for this purpose alone, names the comment
at the revision that the mail was about, and whose mail it was: so a comment that was edited or
decided meanwhile is not decided by it, nor is anything by somebody who is no moderator of the site
any more. To look at it changes nothing; `act` is for a POST.

    seal of [site, comment's id, revision, keyed digest of the address]
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.crypto import encryption, keyed_hashes
from comments.domain.records import Verb
from comments.moderation import decisions
from comments.sites import site_settings

TERM = timedelta(days=7)
VERBS = (Verb.APPROVE, Verb.REJECT, Verb.SPAM)
_PURPOSE = "decide"
_MAIL = "mail"


class ModerationLink(msgspec.Struct, frozen=True, array_like=True):
    """Who may decide about which comment, at which revision. `moderator` is no address."""

    site: str
    comment: str
    revision: int
    moderator: str


def link(comment: records.Comment, address: str, *, secret: str, now: datetime) -> str:
    """The text of a link for the moderator of an address."""
    made = ModerationLink(comment.site, comment.id, comment.revision, _moderator(address, secret))
    return encryption.seal(msgspec.json.encode(made).decode(), _PURPOSE, secret, now=now)


def read(token: str, *, secret: str, now: datetime) -> ModerationLink:
    """What a link lets its holder decide.

    Raises:
        errors.BadLink: it is none of ours, too old, or of somebody who is no moderator any more.
    """
    text = encryption.unseal(token, _PURPOSE, secret, now=now, term=TERM)
    found = msgspec.json.decode(text, type=ModerationLink)
    if found.moderator not in _moderators(found.site, secret):
        raise errors.BadLink("link-revoked")
    return found


def case(warrant: ModerationLink) -> records.Case:
    """The comment of a warrant as it is now.

    Raises:
        errors.NotFound: it is not there any more.
    """
    return decisions.case(warrant.site, warrant.comment)


def stands(warrant: ModerationLink, found: records.Case) -> bool:
    """Whether the comment is what its moderator was told of, but for votes."""
    return found.comment.has_text_of(warrant.revision)


def act(warrant: ModerationLink, verb: Verb, *, now: datetime) -> records.Comment:
    """Decide. Again, it changes nothing.

    Raises:
        errors.BadInput: a link cannot do that.
        errors.RevisionMismatch: the comment was edited or decided since the mail.
        errors.Conflict: its author took it back.
    """
    if verb not in VERBS:
        raise errors.BadInput("verb", "unknown-value", allowed=", ".join(VERBS))
    actor = records.Actor(_MAIL, f"by mail, {warrant.moderator[:6]}")
    return decisions.decide(
        warrant.site, warrant.comment, verb, actor, now=now, revision=warrant.revision
    )


def _moderators(site: str, secret: str) -> Iterator[str]:
    try:
        addresses = site_settings.get(site).moderators
    except errors.NotFound:
        return
    for address in addresses:
        yield from map(keyed_hashes.text, keyed_hashes.every(secret, "moderator", address.lower()))


def _moderator(address: str, secret: str) -> str:
    return keyed_hashes.text(keyed_hashes.keyed(secret, "moderator", address.lower()))

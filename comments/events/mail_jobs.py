"""Mail jobs: the `detail` of events of the kind `mail` (pure).

An event may wait for seconds, or for a day if the mail server is down. A process of the next
release must therefore be able to read its detail. `event` is the id of the event about the comment
that caused the mail. People are identified only by ids, which reveal nothing about them.
"""

from datetime import datetime

import msgspec

from comments.domain import decoders


class ConfirmationMail(msgspec.Struct, frozen=True, tag="asked"):
    """A request to ask the owner of an address whether they want mail.

    The encrypted link contains the address.
    """

    link: str


class LoginMail(msgspec.Struct, frozen=True, tag="entering"):
    """A request to send a sign-in link. The encrypted link contains the address and the site."""

    link: str


class InvitationMail(msgspec.Struct, frozen=True, tag="invited"):
    """A request to send an invitation's link. The encrypted content also contains the address."""

    link: str


class AddressMail(msgspec.Struct, frozen=True, tag="address"):
    """A request to send the link that confirms an account's new address, to that address."""

    link: str


class AccountMail(msgspec.Struct, frozen=True, tag="account"):
    """A request to tell an account's owner about a change (`accounts/security_log`).

    `by` is the entry's actor, `at` its time in seconds since 1970, and `language` the mail's.
    `address` is the encrypted address if it is not the account's: the address before a change.
    """

    account: str
    event: str
    by: str
    at: int
    language: str
    address: str = ""


class ReplyMail(msgspec.Struct, frozen=True, tag="replied"):
    """A request to notify these subscribers of a reply to an author."""

    event: str
    author: str
    to: list[str]


class FollowerMail(msgspec.Struct, frozen=True, tag="followed"):
    """A request to notify the thread's followers after the position `after`.

    Followers in `besides` are not notified.
    """

    event: str
    besides: list[str]
    after: str = ""
    page: int = 1


class RepeatedMail(msgspec.Struct, frozen=True, tag="again"):
    """A request to notify one of the thread's followers again, because the first attempt failed."""

    event: str
    to: str


class HeldCommentMail(msgspec.Struct, frozen=True, tag="held"):
    """A request to notify moderators of a comment that awaits approval.

    `to` lists the moderators; if it is empty, all of the site's moderators are notified.
    """

    event: str
    to: list[str] | None = None


class PublishedMail(msgspec.Struct, frozen=True, tag="published"):
    """A request to notify staff of a published comment (`staff_notices`).

    `to` has the same meaning as in `HeldCommentMail`.
    """

    event: str
    to: list[str] | None = None


class DigestMail(msgspec.Struct, frozen=True, tag="digest"):
    """A request to send a recipient the digest of a period; `mark` identifies the recipient."""

    site: str
    mark: str
    since: datetime
    until: datetime


StaffMail = HeldCommentMail | PublishedMail
EventMail = ReplyMail | FollowerMail | RepeatedMail | StaffMail
LinkMail = ConfirmationMail | LoginMail | InvitationMail | AddressMail
MailJob = LinkMail | AccountMail | EventMail | DigestMail


def tag(job: MailJob) -> str:
    """Return the word that is stored for a job's kind.

    The word does not change if the class is renamed.
    """
    return str(job.__struct_config__.tag)


def encode(job: MailJob) -> str:
    return msgspec.json.encode(job).decode()


def decode(detail: str) -> MailJob:
    job: MailJob = decoders.json(MailJob).decode(detail)
    return job

"""Mail jobs: the `detail` of events of the kind mail (pure).

An event waits for seconds, or for a day if the mail server is down, so a process of the next
release must be able to read its detail. `event` is the id of the event for the comment that the
mail is about. People are identified by ids that reveal nothing about them.
"""

import msgspec


class ConfirmationMail(msgspec.Struct, frozen=True, tag="asked"):
    """Ask the owner of an address whether they want mail.

    The encrypted link contains the address.
    """

    link: str


class LoginMail(msgspec.Struct, frozen=True, tag="entering"):
    """Send a link to sign in. The encrypted link contains the address and the site."""

    link: str


class ReplyMail(msgspec.Struct, frozen=True, tag="replied"):
    """Notify these subscribers of a reply to an author."""

    event: str
    author: str
    to: list[str]


class FollowerMail(msgspec.Struct, frozen=True, tag="followed"):
    """Notify the thread's followers after the position `after`, except those in `besides`."""

    event: str
    besides: list[str]
    after: str = ""
    page: int = 1


class RepeatedMail(msgspec.Struct, frozen=True, tag="again"):
    """Notify one follower of the thread again, because the first attempt failed."""

    event: str
    to: str


class HeldCommentMail(msgspec.Struct, frozen=True, tag="held"):
    """Notify the site's moderators, or those in `to`, of a comment that awaits approval."""

    event: str
    to: list[str] | None = None


Told = ReplyMail | FollowerMail | RepeatedMail | HeldCommentMail
MailJob = ConfirmationMail | LoginMail | Told


def tag(job: MailJob) -> str:
    """Return the word that stores the kind of a job.

    The word does not change when the class is renamed.
    """
    return str(job.__struct_config__.tag)


def encode(job: MailJob) -> str:
    return msgspec.json.encode(job).decode()


def decode(detail: str) -> MailJob:
    found: MailJob = msgspec.json.decode(detail, type=MailJob)
    return found

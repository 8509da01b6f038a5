"""What is to be mailed, as the events of it hold it (pure).

Owns the stored form of `detail` in events of the kind mail, which wait for seconds, or for a day
where a mail server is away: a process of the next release has to read it. `event` is the event of
the comment that it is about. People are named by ids that say nothing of them.
"""

import msgspec


class ConfirmationMail(msgspec.Struct, frozen=True, tag="asked"):
    """Ask somebody whether he wants mail. The link that does so holds who and what, sealed."""

    link: str


class LoginMail(msgspec.Struct, frozen=True, tag="entering"):
    """Send somebody the link with which he signs in. It holds who and where, sealed."""

    link: str


class ReplyMail(msgspec.Struct, frozen=True, tag="replied"):
    """Tell these subscribers of a reply to an author."""

    event: str
    author: str
    to: list[str]


class FollowerMail(msgspec.Struct, frozen=True, tag="followed"):
    """Tell the followers of the thread behind a position, but for some."""

    event: str
    besides: list[str]
    after: str = ""
    page: int = 1


class RepeatedMail(msgspec.Struct, frozen=True, tag="again"):
    """Tell one follower of the thread, who could not be reached."""

    event: str
    to: str


class HeldCommentMail(msgspec.Struct, frozen=True, tag="held"):
    """Tell the site's moderators that a comment waits for them: all of them, or some."""

    event: str
    to: list[str] | None = None


Told = ReplyMail | FollowerMail | RepeatedMail | HeldCommentMail
MailJob = ConfirmationMail | LoginMail | Told


def tag(job: MailJob) -> str:
    """The word by which its kind is stored, which stays whatever its class is called."""
    return str(job.__struct_config__.tag)


def encode(errand: MailJob) -> str:
    """An errand as it is stored."""
    return msgspec.json.encode(errand).decode()


def decode(detail: str) -> MailJob:
    """A stored errand."""
    found: MailJob = msgspec.json.decode(detail, type=MailJob)
    return found

"""What is to be mailed, as the events of it hold it (pure).

Owns the stored form of `detail` in events of the kind mail, which wait for seconds, or for a day
where a mail server is away: a process of the next release has to read it. `event` is the event of
the comment that it is about. People are named by ids that say nothing of them.
"""

import msgspec


class Asked(msgspec.Struct, frozen=True, tag="asked"):
    """Ask somebody whether he wants mail. The link that does so holds who and what, sealed."""

    link: str


class Entering(msgspec.Struct, frozen=True, tag="entering"):
    """Send somebody the link with which he signs in. It holds who and where, sealed."""

    link: str


class Replied(msgspec.Struct, frozen=True, tag="replied"):
    """Tell these subscribers of a reply to an author."""

    event: str
    author: str
    to: list[str]


class Followed(msgspec.Struct, frozen=True, tag="followed"):
    """Tell the followers of the thread behind a position, but for some."""

    event: str
    besides: list[str]
    after: str = ""
    page: int = 1


class Again(msgspec.Struct, frozen=True, tag="again"):
    """Tell one follower of the thread, who could not be reached."""

    event: str
    to: str


class Held(msgspec.Struct, frozen=True, tag="held"):
    """Tell the site's moderators that a comment waits for them: all of them, or some."""

    event: str
    to: list[str] | None = None


Told = Replied | Followed | Again | Held
Errand = Asked | Entering | Told


def encode(errand: Errand) -> str:
    """An errand as it is stored."""
    return msgspec.json.encode(errand).decode()


def decode(detail: str) -> Errand:
    """A stored errand."""
    found: Errand = msgspec.json.decode(detail, type=Errand)
    return found

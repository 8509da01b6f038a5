"""Author ids: the prefix of each kind, and an author's age in days (pure).

    a:{account}             an author who signs in
    g:{26 letters}.{days}   a guest, with the number of days (UTC) from 1970 until they got the id
    g:{26 letters}          a guest whose first action was a vote, or whose id predates dated ids
    i:{26 letters}          the author of an imported comment

Ids are stored with comments and contained in tokens, so these formats must never change. Users
cannot forge an id, because tokens are signed. A guest whose id contains no day counts as new today.
"""

import re
from datetime import date, datetime, timedelta

GUEST = "g:"
ACCOUNT = "a:"
IMPORTED = "i:"
_EPOCH = date(1970, 1, 1)
_DATED = re.compile(r"g:[a-z2-7]{26}\.([0-9]{1,6})")


def guest(text: str, now: datetime) -> str:
    """Return the id of a guest who arrives at `now`."""
    return f"{GUEST}{text}.{(now.date() - _EPOCH).days}"


def is_one(text: str) -> bool:
    """Return whether a text has the prefix of an author id."""
    return text.startswith((GUEST, ACCOUNT, IMPORTED))


def age(author: str, since: datetime | None, now: datetime) -> int | None:
    """Return how many days (UTC) ago an author became known; None if unknown (imports).

    `since` is the time when the author's account was created, if the author has one. An empty
    author id counts as new.
    """
    if author.startswith(ACCOUNT):
        return None if since is None else _days(since.date(), now)
    if match := _DATED.fullmatch(author):
        return _days(_EPOCH + timedelta(days=int(match[1])), now)
    return 0 if not author or author.startswith(GUEST) else None


def _days(since: date, now: datetime) -> int:
    return max(0, (now.date() - since).days)

"""Ids of authors: what each kind begins with, and since when somebody is here (pure).

    a:{account}             somebody who signs in
    g:{26 letters}.{days}   a guest, and on which day since 1970 (UTC) he got the id
    g:{26 letters}          a guest who voted first, or came before ids told that
    i:{26 letters}          whoever wrote an imported comment

Ids are stored with comments and stand in tokens, so these forms are for ever. Nobody makes one up:
a token is signed. A guest whose id tells no day counts as one who came today.
"""

import re
from datetime import date, datetime, timedelta

GUEST = "g:"
ACCOUNT = "a:"
IMPORTED = "i:"
_EPOCH = date(1970, 1, 1)
_DATED = re.compile(r"g:[a-z2-7]{26}\.([0-9]{1,6})")


def guest(text: str, now: datetime) -> str:
    """The id of a guest who comes now."""
    return f"{GUEST}{text}.{(now.date() - _EPOCH).days}"


def is_one(text: str) -> bool:
    """Whether a text begins as an author's id does."""
    return text.startswith((GUEST, ACCOUNT, IMPORTED))


def age(author: str, since: datetime | None, now: datetime) -> int | None:
    """For how many days (UTC) an author is here; None where nobody can tell, as of an import.

    `since` is when his account was made, if he has one. No id is a newcomer's.
    """
    if author.startswith(ACCOUNT):
        return None if since is None else _days(since.date(), now)
    if found := _DATED.fullmatch(author):
        return _days(_EPOCH + timedelta(days=int(found[1])), now)
    return 0 if not author or author.startswith(GUEST) else None


def _days(since: date, now: datetime) -> int:
    return max(0, (now.date() - since).days)

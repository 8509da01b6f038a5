"""The ids of websites (pure)."""

import re

from comments import errors

_LONGEST = 63
_ID = re.compile(rf"[a-z0-9-]{{1,{_LONGEST}}}")


def is_site_id(given: str) -> bool:
    return _ID.fullmatch(given) is not None


def check(given: str) -> str:
    """Return a website's id if it is well-formed.

    Raises:
        errors.BadInput: the id is malformed.
    """
    if not is_site_id(given):
        raise errors.BadInput("site", "bad-id", limit=_LONGEST)
    return given

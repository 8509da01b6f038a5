"""The ids of websites (pure)."""

import itertools
import re
from collections.abc import Container

from comments import errors

_LONGEST = 63
_OTHERS = re.compile("[^a-z0-9]+")
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


def guess(host: str, taken: Container[str]) -> str:
    """Return an id for a website, from its host: `jane` for `www.jane.example`.

    An IP address, or a label without Latin letters and digits, gives `blog`. The id is not in
    `taken`.
    """
    is_ip = ":" in host or host.replace(".", "").isdigit()
    label = "" if is_ip else host.removeprefix("www.").partition(".")[0]
    base = _OTHERS.sub("-", label).strip("-")[: _LONGEST - 4] or "blog"
    numbered = (f"{base}-{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([base], numbered) if name not in taken)

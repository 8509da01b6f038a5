"""Make and read form tokens, which a page posts instead of the mailed link that opened the page.

A link in mail is valid for days or forever, and it ends up in browser histories and logs.
Therefore, the link itself only opens a page, except for one-click unsubscribe (RFC 8058). The form
on that page posts a token: the link, encrypted for the page's purpose and valid for `TERM`. A token
that later leaks from a form or log is useless.
"""

from datetime import datetime, timedelta

from comments import errors
from comments.domain.crypto import encryption

TERM = timedelta(minutes=30)
_EXPIRED = "link-expired"


def make(link: str, purpose: str, secret: str, *, now: datetime) -> str:
    """Encrypt a link into a token for a page's form."""
    return encryption.seal(link, f"{purpose} slip", secret, now=now)


def read(token: str, purpose: str, secret: str, *, now: datetime) -> str:
    """Return the link in a form token.

    Raises:
        errors.BadLink: the token is older than `TERM` or not valid for this purpose.
    """
    try:
        return encryption.unseal(token, f"{purpose} slip", secret, now=now, term=TERM)
    except errors.BadLink as error:
        if error.code != _EXPIRED:
            raise
        raise errors.BadLink("page-expired") from error

"""Form tokens: what a button posts in place of the link that opened its page.

A link in mail is good for days or for ever, and it ends up in histories and in logs. So it opens a
page and does nothing by itself, except for one-click unsubscribe (RFC 8058). The form on that page
posts a slip: the link, sealed for the page's purpose and good for `TERM`. A form, an address or a
log that leaks afterwards is worth nothing.
"""

from datetime import datetime, timedelta

from comments import errors
from comments.domain.crypto import encryption

TERM = timedelta(minutes=30)
_EXPIRED = "link-expired"


def make(link: str, purpose: str, secret: str, *, now: datetime) -> str:
    """Seal a link for the form of a page."""
    return encryption.seal(link, f"{purpose} slip", secret, now=now)


def read(slip: str, purpose: str, secret: str, *, now: datetime) -> str:
    """Return the link of a slip.

    Raises:
        errors.BadLink: it is no slip for this purpose, or older than `TERM`.
    """
    try:
        return encryption.unseal(slip, f"{purpose} slip", secret, now=now, term=TERM)
    except errors.BadLink as error:
        if error.code != _EXPIRED:
            raise
        raise errors.BadLink("page-expired") from error

"""Make and read the links with which staff unsubscribe from the mail about a site's comments.

    encrypted [site, mark of the recipient]

A link never expires, because people keep mail. It contains no address, and it only ends the mail to
the recipient who got it.
"""

from datetime import datetime
from typing import NamedTuple

import msgspec

from comments import errors
from comments.domain import decoders, records
from comments.domain.crypto import encryption
from comments.domain.moderation import staff_notices
from comments.events import audit_log
from comments.sites import notice_recipients, site_settings

_PURPOSE = "staff notices"
_BY_LINK = records.Actor("mail", "by mail")


class StaffLink(NamedTuple):
    """The content of a link."""

    site: str
    mark: str


def link(site: str, recipient: staff_notices.StaffRecipient, *, secret: str, now: datetime) -> str:
    """Make the token for a recipient's link."""
    text = msgspec.json.encode([site, recipient.mark]).decode()
    return encryption.seal(text, _PURPOSE, secret, now=now)


def read(token: str, *, secret: str, now: datetime) -> StaffLink:
    """Decrypt a link.

    Raises:
        errors.BadLink: the link is invalid.
    """
    text = encryption.unseal(token, _PURPOSE, secret, now=now)
    site, mark = decoders.json(tuple[str, str]).decode(text)
    return StaffLink(site, mark)


def unsubscribe(opened: StaffLink, *, now: datetime) -> None:
    """Stop the mail to a link's recipient. Repeating the call changes nothing."""
    try:
        recipients = site_settings.kept_site(opened.site).recipients
    except errors.NotFound:
        return  # The site is erased, and so are its recipients.
    recipient = next((recipient for recipient in recipients if recipient.mark == opened.mark), None)
    if recipient is not None:
        noted = audit_log.Noted(audit_log.Act(_BY_LINK, "set-site"), now)
        choice = staff_notices.NoticeChoice.NONE
        notice_recipients.choose(opened.site, recipient.who, choice, noted=noted)

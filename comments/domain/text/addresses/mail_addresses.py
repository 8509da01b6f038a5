"""E-mail addresses that people enter: validation of one plain address, and its mailbox (pure).

An address is refused if two programs could interpret it differently: as a list, as several
recipients, as an option of a command or as a pipe.
"""

import re

from comments import errors
from comments.domain.text.addresses import host_names

LONGEST = 254  # In characters.
# The last label must not be a number: some servers read a@127.0.0.1 as an address on that host.
_ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@([A-Za-z0-9-]+\.)+(?!0[xX])[A-Za-z0-9-]*[A-Za-z][A-Za-z0-9-]*"
)


def check(text: str) -> str:
    """Return an address if mail may be sent to it; lists, names, quotes and literals are refused.

    Raises:
        errors.BadInput: the text is not a plain address.
    """
    _, _, domain = canonical_or_stored(text).partition("@")
    # Programs that send mail have misinterpreted addresses like these as options or commands.
    if text.startswith(("-", "|")) or host_names.canonical(domain, "email") != domain.lower():
        raise errors.BadInput("email", "not-an-email")
    return text


def canonical_or_stored(text: str) -> str:
    """Return an address that this release or an older one accepts, for look-up or erasure.

    Raises:
        errors.BadInput: no release accepts the text as an address.
    """
    local, _, _ = text.partition("@")
    is_dotted = local.startswith(".") or local.endswith(".") or ".." in local
    if len(text) > LONGEST or not _ADDRESS.fullmatch(text) or is_dotted:
        raise errors.BadInput("email", "not-an-email")
    return text


def shorten(address: str) -> str:
    """Return the first character and the domain of an address; "" if there is no address."""
    local, at, domain = address.partition("@")
    return f"{local[:1]}…{at}{domain}" if address else ""


def mailbox(address: str) -> str:
    """Return the mailbox of an address for rate limits, so that each recipient has one limit.

    Dots are removed, and so is the text from a "+" on. Only some providers ignore these parts. With
    other providers, a few people share a limit, which does no harm.
    """
    local, _, domain = address.lower().partition("@")
    domain = "gmail.com" if domain == "googlemail.com" else domain
    return f"{local.partition('+')[0].replace('.', '')}@{domain}"

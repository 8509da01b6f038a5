"""Parsing of setting values, one function for each form of value.

Each raises `errors.Misconfigured` with a sentence that names the setting. A value that may contain
a password is not repeated.
"""

import dataclasses
import enum
import grp
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from comments import errors

SECRET_BYTES = 16
_LONGEST_NUMBER = 20
_QUEUE = re.compile(r"projects/[\w:.-]+/locations/[a-z0-9-]+/queues/[A-Za-z0-9-]{1,100}", re.ASCII)
_HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")
_PUBLIC_URL = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?")


class Security(enum.StrEnum):
    """How a connection to a mail server is secured."""

    TLS = "smtps"
    STARTTLS = "smtp"
    NONE = "smtp+plain"


_MAIL_PORTS = {Security.TLS: 465, Security.STARTTLS: 587, Security.NONE: 25}


@dataclasses.dataclass(frozen=True, slots=True)
class Smtp:
    """A mail server. `ca_file` contains the trusted certificates; "" means the system's."""

    security: Security
    host: str
    port: int
    user: str = ""
    password: str = dataclasses.field(default="", repr=False)
    ca_file: str = ""


def number(values: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    """Parse a whole number from `low` to `high`."""
    text = values.get(name)
    if not text:
        return default
    # Python refuses to parse a number of thousands of digits, with its own error.
    is_short = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    if not (is_short and low <= int(text) <= high):
        shown = text if is_short else f"{text[:_LONGEST_NUMBER]!r}"
        raise errors.Misconfigured(f"{name} is a whole number from {low} to {high}, not {shown}")
    return int(text)


def smtp(values: Mapping[str, str]) -> Smtp | None:
    """Parse SMTP_URL, the mail server; None if it is unset."""
    given = values.get("SMTP_URL", "")
    if not given:
        return None
    # The value is not repeated, because it may contain a password.
    problem = errors.Misconfigured("SMTP_URL is like smtps://USER:PASSWORD@HOST:PORT")
    try:
        parts = urlsplit(given)
        security, port = Security(parts.scheme), parts.port
    except ValueError as error:
        raise problem from error
    if not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
        raise problem
    if parts.username and security is Security.NONE:
        raise errors.Misconfigured("SMTP_URL: smtp+plain would send the password in the clear")
    return Smtp(
        security,
        parts.hostname,
        port or _MAIL_PORTS[security],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        values.get("SMTP_CA_FILE", ""),
    )


def mail_from(values: Mapping[str, str]) -> str:
    """Parse MAIL_FROM, the sender of mail: one plain address."""
    given = values.get("MAIL_FROM", "")
    local, at, domain = given.partition("@")
    is_plain = given.isascii() and given.isprintable() and not set(' ,;:<>"()[]\\') & set(given)
    if given and not (is_plain and at and local and domain and "@" not in domain):
        raise errors.Misconfigured("MAIL_FROM is one plain address")
    if values.get("SMTP_URL") and not given:
        raise errors.Misconfigured("MAIL_FROM is not set: SMTP_URL needs a sender")
    return given


def public_url(values: Mapping[str, str]) -> str:
    """Parse PUBLIC_URL, where people reach the service; without a final slash."""
    given = values.get("PUBLIC_URL", "").rstrip("/")
    if values.get("SMTP_URL") and not given:
        # A request's host name can be forged, so links in mail are built from this setting only.
        raise errors.Misconfigured("PUBLIC_URL is not set: SMTP_URL needs it for links in mail")
    if given and not _PUBLIC_URL.fullmatch(given):
        raise errors.Misconfigured("PUBLIC_URL is like https://comments.example")
    return given


def hosts(given: str) -> tuple[str, ...]:
    """Parse host names, separated by commas, into lower case."""
    names = tuple(each.strip().rstrip(".").lower() for each in given.split(",") if each.strip())
    for name in names:
        if not _HOST.fullmatch(name):
            raise errors.Misconfigured(
                f"HOSTS is host names without ports, separated by commas; {name!r} is not one"
            )
    return names


def group(given: str) -> str:
    """Check the name of a group of this machine."""
    if given:
        try:
            grp.getgrnam(given)
        except (KeyError, ValueError) as error:
            raise errors.Misconfigured(
                f"DATA_GROUP is a group of this machine; there is no {given!r}"
            ) from error
    return given


def queue(given: str) -> str:
    """Check the name of a Cloud Tasks queue."""
    if given and not _QUEUE.fullmatch(given):
        raise errors.Misconfigured(
            "TASKS_QUEUE is like projects/PROJECT/locations/LOCATION/queues/QUEUE"
        )
    return given


def long_enough(name: str, given: str) -> str:
    """Check that a secret has at least `SECRET_BYTES` characters, or is empty."""
    if given and len(given) < SECRET_BYTES:
        raise errors.Misconfigured(f"{name} is at least {SECRET_BYTES} characters")
    return given

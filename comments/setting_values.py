"""Parsing of setting values, with one function per format.

Each function raises `errors.Misconfigured` with a message that names the setting. Messages never
repeat a value that may contain a password.
"""

import dataclasses
import enum
import grp
import re
from collections.abc import Iterator, Mapping
from datetime import time
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from comments import errors

SECRET_BYTES = 16
_LONGEST_NUMBER = 20
_QUEUE = re.compile(r"projects/[\w:.-]+/locations/[a-z0-9-]+/queues/[A-Za-z0-9-]{1,100}", re.ASCII)
_TIME = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]")
_HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")
_PUBLIC_URL = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?")


# Settings whose values nobody may see. SMTP_URL may contain a password.
SECRETS = frozenset(("METRICS_TOKEN", "SECRET", "SECRET_OLD", "SMTP_URL", "TASKS_SECRET"))


class SettingSource(enum.StrEnum):
    """Where the value of a setting comes from; a file is the one that FLATTHREAD_CONFIG names."""

    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


class ListedSetting(NamedTuple):
    """A setting for people who look up how a service is configured.

    `value` is None for a secret, and "" for a setting that is not set and has no default.
    """

    name: str
    value: str | None
    source: SettingSource


class Security(enum.StrEnum):
    """The ways to secure a connection to a mail server, by URL scheme."""

    TLS = "smtps"
    STARTTLS = "smtp"
    NONE = "smtp+plain"


MAIL_PORTS = {Security.TLS: 465, Security.STARTTLS: 587, Security.NONE: 25}


@dataclasses.dataclass(frozen=True, slots=True)
class Smtp:
    """A mail server.

    `ca_file` contains the trusted certificates; "" means the system's certificates.
    """

    security: Security
    host: str
    port: int
    user: str = ""
    password: str = dataclasses.field(default="", repr=False)
    ca_file: str = ""


def list_all(
    defaults: Mapping[str, str], file: Mapping[str, str], environ: Mapping[str, str]
) -> Iterator[ListedSetting]:
    """Yield every setting in `defaults`, by name, with the source that takes precedence."""
    sources = (
        (SettingSource.ENVIRONMENT, environ),
        (SettingSource.FILE, file),
        (SettingSource.DEFAULT, defaults),
    )
    for name in sorted(defaults):
        source, values = next(
            (pair for pair in sources if pair[1].get(name)), (SettingSource.DEFAULT, defaults)
        )
        yield ListedSetting(name, None if name in SECRETS else values[name], source)


def number(values: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    """Parse a whole number between `low` and `high`."""
    text = values.get(name)
    if not text:
        return default
    # Refuse very long numbers here, because `int` would raise its own error.
    is_short = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    if not (is_short and low <= int(text) <= high):
        shown = text if is_short else f"{text[:_LONGEST_NUMBER]!r}"
        raise errors.Misconfigured(
            f"{name} must be a whole number from {low} to {high}, not {shown}"
        )
    return int(text)


def time_of_day(values: Mapping[str, str], name: str, default: time) -> time:
    """Parse a time of day, in UTC."""
    text = values.get(name)
    if not text:
        return default
    if not _TIME.fullmatch(text):
        raise errors.Misconfigured(f"{name} must be a time such as 03:00 (UTC), not {text[:20]!r}")
    return time.fromisoformat(text)


def smtp(values: Mapping[str, str]) -> Smtp | None:
    """Parse SMTP_URL, which names the mail server. Return None if the setting is unset."""
    given = values.get("SMTP_URL", "")
    if not given:
        return None
    # The value is not repeated, because it may contain a password.
    problem = errors.Misconfigured("SMTP_URL must look like smtps://USER:PASSWORD@HOST:PORT")
    try:
        parts = urlsplit(given)
        security, port = Security(parts.scheme), parts.port
    except ValueError as error:
        raise problem from error
    if not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
        raise problem
    if parts.username and security is Security.NONE:
        raise errors.Misconfigured("SMTP_URL: smtp+plain would send the password unencrypted")
    return Smtp(
        security,
        parts.hostname,
        port or MAIL_PORTS[security],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        values.get("SMTP_CA_FILE", ""),
    )


def mail_from(values: Mapping[str, str]) -> str:
    """Parse MAIL_FROM, the sender of all mail: one address without a display name."""
    given = values.get("MAIL_FROM", "")
    local, at, domain = given.partition("@")
    is_plain = given.isascii() and given.isprintable() and not set(' ,;:<>"()[]\\') & set(given)
    if given and not (is_plain and at and local and domain and "@" not in domain):
        raise errors.Misconfigured("MAIL_FROM must be one plain address")
    if values.get("SMTP_URL") and not given:
        raise errors.Misconfigured("MAIL_FROM is not set: SMTP_URL needs a sender")
    return given


def public_url(values: Mapping[str, str]) -> str:
    """Parse PUBLIC_URL, the address of the service for browsers; remove a final slash."""
    given = values.get("PUBLIC_URL", "").rstrip("/")
    if values.get("SMTP_URL") and not given:
        # A request's host name can be forged, so links in mail are built from this setting only.
        raise errors.Misconfigured("PUBLIC_URL is not set: SMTP_URL needs it for links in mail")
    if given and not _PUBLIC_URL.fullmatch(given):
        raise errors.Misconfigured("PUBLIC_URL must look like https://comments.example")
    return given


def hosts(given: str) -> tuple[str, ...]:
    """Parse host names that are separated by commas, and convert them to lower case."""
    names = tuple(name.strip().rstrip(".").lower() for name in given.split(",") if name.strip())
    for name in names:
        if not _HOST.fullmatch(name):
            raise errors.Misconfigured(
                "HOSTS must be host names without ports, separated by commas; "
                f"{name!r} is not a host name"
            )
    return names


def group(given: str) -> str:
    """Check that this machine has a group with this name."""
    if given:
        try:
            grp.getgrnam(given)
        except (KeyError, ValueError) as error:
            raise errors.Misconfigured(
                f"DATA_GROUP must be a group of this machine; there is no group {given!r}"
            ) from error
    return given


def queue(given: str) -> str:
    """Check the name of a Cloud Tasks queue."""
    if given and not _QUEUE.fullmatch(given):
        raise errors.Misconfigured(
            "TASKS_QUEUE must look like projects/PROJECT/locations/LOCATION/queues/QUEUE"
        )
    return given


def long_enough(name: str, given: str) -> str:
    """Check that a secret is empty or has at least `SECRET_BYTES` characters."""
    if given and len(given) < SECRET_BYTES:
        raise errors.Misconfigured(f"{name} must have at least {SECRET_BYTES} characters")
    return given

"""Host names in URLs that people enter: valid hosts and ports, and their canonical form (pure).

This module owns the rules that thread ids, site origins, authors' websites and mail addresses
share. The result of `canonical` is part of stored thread ids, so changing it would separate pages
from their comments.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Callable

from comments import errors

# The maximum number of characters in a host name; DNS cannot resolve longer names.
LONGEST = 253
MAX_PORT = 65_535
USUAL_PORTS = {"http": 80, "https": 443}
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# A last label of this form makes browsers read the host as an IPv4 address.
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[0-9]{1,6}")
# Last labels of names that are used only on one machine or in a private network (RFC 6761, 6762,
# 8375, and the reserved "internal"). Names without a dot are private too.
_PRIVATE = (".localhost", ".local", ".test", ".internal", ".home.arpa")
_DOTS = re.compile("[.\u3002\uff0e\uff61]")
# Scripts that one word may combine, by Unicode's "highly restrictive" profile (UTS 39).
_MIXED = (
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA"},
    {"LATIN", "CJK", "BOPOMOFO"},
    {"LATIN", "CJK", "HANGUL"},
)


def canonical(name: str, field: str) -> str:
    """Return a host in lower-case ASCII: a name, an IPv4 address, or an IPv6 address in brackets.

    Raises:
        errors.BadInput: browsers do not accept the host; the error names the field.
    """
    # A scope ("%eth0") is local to one machine; no address on the web contains one.
    if name.startswith("[") and name.endswith("]") and "%" not in name:
        return f"[{_address(name[1:-1], field, ipaddress.IPv6Address)}]"
    # A final dot denotes the DNS root; the host is the same without it.
    ascii_name = _to_ascii(name, field).removesuffix(".")
    labels = ascii_name.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        return _address(ascii_name, field, ipaddress.IPv4Address)
    if len(ascii_name) > LONGEST or not all(_LABEL.fullmatch(label) for label in labels):
        raise errors.BadInput(field, "bad-host")
    return ascii_name


def is_local(host: str) -> bool:
    """Return whether a canonical host is a test machine: a private name or a private address.

    The host may include a port.
    """
    name = host.rpartition("]")[0].strip("[") or host.partition(":")[0]
    try:
        return ipaddress.ip_address(name).is_private
    except ValueError:
        return "." not in name or name.endswith(_PRIVATE)


def port(scheme: str, text: str, field: str) -> int:
    """Return the port in a URL with this scheme, or the scheme's default port.

    Raises:
        errors.BadInput: the port does not exist; the error names the field.
    """
    number = int(text) if _PORT.fullmatch(text) else 0
    if text and not 0 < number <= MAX_PORT:
        raise errors.BadInput(field, "bad-port", maximum=MAX_PORT)
    return number or USUAL_PORTS[scheme]


def check_scripts(name: str, field: str) -> None:
    """Refuse a host that mixes scripts in one word, because it could look like a different host.

    Raises:
        errors.BadInput: a word mixes scripts; the error names the field.
    """
    if name.isascii():
        return
    for label in _DOTS.split(unicodedata.normalize("NFKC", name)):
        scripts = {_script(letter) for letter in label if letter.isalpha()}
        if len(scripts) > 1 and not any(scripts <= mixed for mixed in _MIXED):
            raise errors.BadInput(field, "mixed-scripts")


def _script(letter: str) -> str:
    """Return a letter's script, which is the first word of the letter's Unicode name."""
    return unicodedata.name(letter, "").partition(" ")[0].partition("-")[0]


def _address(text: str, field: str, parse: Callable[[str], object]) -> str:
    try:
        return str(parse(text))
    except ValueError as error:
        raise errors.BadInput(field, "bad-host") from error


def _to_ascii(name: str, field: str) -> str:
    if name.isascii():
        return name.lower()
    if len(name) > LONGEST:
        raise errors.BadInput(field, "bad-host")
    # Browsers send ASCII, so only typed addresses need these tables, which are loaded on demand.
    import idna  # noqa: PLC0415

    try:
        return idna.encode(name, uts46=True).decode().lower()
    except UnicodeError as error:
        raise errors.BadInput(field, "bad-host") from error

"""Web origins, as browsers write them in the `Origin` header (pure)."""

import re
from urllib.parse import urlsplit

from comments import errors
from comments.domain.text.addresses import host_names

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://")


def check(origin: str, field: str = "origin") -> str:
    """Return an origin as browsers send it.

    Scheme and host are in lower case, and the port is included unless it is the scheme's default
    port.

    Raises:
        errors.BadInput: the value is not an origin; the error names `field`.
    """
    problem = errors.BadInput(field, "bad-origin", value=origin)
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError as error:
        raise problem from error
    host = parts.hostname or ""
    if not _is_host(host):
        raise problem
    if ":" in host:
        host = f"[{host}]"
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    suffix = "" if port in {None, usual} else f":{port}"
    plain = f"{parts.scheme}://{host}{suffix}"
    if usual is None or origin.rstrip("/").lower() not in {
        plain,
        f"{plain}:{usual}",
    }:
        raise problem
    return plain


def of_address(text: str, field: str = "origin") -> str:
    """Return the origin of a web address as people type it, with or without scheme and path.

    An address without a scheme gets https, or http on a test machine. Without a scheme or a port, a
    single word is not a host, except `localhost`.

    Raises:
        errors.BadInput: the text is not a web address; the error names `field`.
    """
    problem = errors.BadInput(field, "not-a-url")
    match = _SCHEME.match(text.strip())
    try:
        parts = urlsplit(f"//{text.strip()[match.end() if match else 0 :]}")
        name = parts.hostname or ""
        host = host_names.canonical(f"[{name}]" if ":" in name else name, field)
        port = "" if parts.port is None else f":{parts.port}"
    except (ValueError, errors.BadInput) as error:
        raise problem from error
    is_word = "." not in host and ":" not in host and host != "localhost"
    if is_word and not (match or port):
        raise problem
    guessed = "http" if host_names.is_local(host) else "https"
    scheme = match[1].lower() if match else guessed
    if scheme not in host_names.USUAL_PORTS or parts.username is not None:
        raise problem
    return check(f"{scheme}://{host}{port}", field)


def _is_host(host: str) -> bool:
    """Return whether a text is a host as browsers write it.

    A host is a name, or an address in its usual form.

    The parser accepts other hosts too, but they could end a directive of a content security policy,
    or would match no browser's origin.
    """
    try:
        name = host_names.canonical(f"[{host}]" if ":" in host else host, "origin")
    except errors.BadInput:
        return False
    return name.strip("[]") == host or f"{name}." == host

"""Web origins, as browsers write them in the `Origin` header (pure)."""

from urllib.parse import urlsplit

from comments import errors
from comments.domain.text import host_names


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


def _is_host(host: str) -> bool:
    """Return whether a text is a host as browsers write it.

    A host is a name, or an address in its usual form.

    Other hosts that the parser accepts could end a directive of a content security policy, or would
    match no browser's origin.
    """
    try:
        found = host_names.canonical(f"[{host}]" if ":" in host else host, "origin")
    except errors.BadInput:
        return False
    return found.strip("[]") == host or f"{found}." == host

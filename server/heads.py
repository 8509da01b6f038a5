"""The head of a request, parsed by gunicorn's parser.

Headers with which a proxy describes a request (`SCRIPT_NAME`, `X-Forwarded-Proto`) have no effect
here, no matter who sends them: the application decides whether to trust them.
"""

import types
from typing import Any

from gunicorn.http import errors  # type: ignore[import-untyped]
from gunicorn.http.body import ChunkedReader  # type: ignore[import-untyped]
from gunicorn.http.message import Request  # type: ignore[import-untyped]
from gunicorn.http.unreader import IterUnreader  # type: ignore[import-untyped]

# The parser looks up the peer in these settings for each request. No peer is trusted to set
# anything.
_TRUST = {
    "forwarded_allow_ips": ["*"],
    "forwarded_allow_networks": list,
    "forwarder_headers": [],
    "secure_scheme_headers": {},
    "is_ssl": False,
}


# A page's address in a query may be as long as the head may be (`Limits.largest_head`); gunicorn
# limits the line to 4,094 bytes.
_WHOLE_HEAD = {"limit_request_line": 0}


def settings(cfg: Any) -> types.SimpleNamespace:
    """Resolve gunicorn's settings once: doing it per request took half of the parser's time."""
    values = {name: setting.get() for name, setting in cfg.settings.items()}
    return types.SimpleNamespace(**values | _TRUST | _WHOLE_HEAD)


def parse(fixed: types.SimpleNamespace, head: bytes, client: Any, number: int) -> Any:
    """Return gunicorn's request for a complete head, the `number`th of its connection.

    Raises:
        ParseException: this is not a request.
    """
    try:
        return Request(fixed, IterUnreader([head]), client, number)
    except (errors.NoMoreData, StopIteration) as error:
        raise errors.InvalidRequestLine("the head is empty") from error


def length(request: Any) -> int | None:
    """Return the length of a request's body in bytes; None if it is chunked."""
    reader = request.body.reader
    return None if isinstance(reader, ChunkedReader) else reader.length


def expects_continue(request: Any) -> bool:
    """Whether the client waits for "100 Continue" before it sends its body."""
    is_asked = any(name == "EXPECT" for name, _ in request.headers)
    return is_asked and bool(request.version >= (1, 1))

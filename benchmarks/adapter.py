"""A WSGI application as an ASGI one: what an evented server needs to run this product.

Owns the applications that `benchmarks.servers` gives to ASGI servers. The body is read whole on the
event loop, so that no thread waits for a client; a pool of threads runs the WSGI application; the
answer is sent under the server's own backpressure.
"""

import asyncio
import io
from collections.abc import Awaitable, Callable
from concurrent import futures
from typing import TYPE_CHECKING, Any

from benchmarks import ways

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

THREADS = 8
_Receive = Callable[[], Awaitable[dict[str, Any]]]
_Send = Callable[[dict[str, Any]], Awaitable[None]]
_Answer = tuple[int, list[tuple[bytes, bytes]], bytes]


class Adapter:
    """An ASGI application that has a WSGI one answer."""

    def __init__(self, wsgi: "WSGIApplication") -> None:
        self._wsgi = wsgi
        self._pool: futures.ThreadPoolExecutor | None = None

    async def __call__(self, scope: dict[str, Any], receive: _Receive, send: _Send) -> None:
        """Answer a request; leave every other protocol to the server."""
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        if self._pool is None:  # made after the last fork
            self._pool = futures.ThreadPoolExecutor(THREADS)
        loop = asyncio.get_running_loop()
        environ = _environ(scope, bytes(body))
        status, headers, sent = await loop.run_in_executor(self._pool, self._answer, environ)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": sent})

    def _answer(self, environ: dict[str, Any]) -> _Answer:
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, headers: list[tuple[str, str]], *_rest: object) -> Any:
            started.append((status, headers))

        chunks = self._wsgi(environ, start)
        body = b"".join(chunks)
        if hasattr(chunks, "close"):
            chunks.close()
        status, headers = started[-1]
        encoded = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
        return int(status[:3]), encoded, body


def _environ(scope: dict[str, Any], body: bytes) -> dict[str, Any]:
    server, client = scope["server"] or ("", 0), scope["client"] or ("", 0)
    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": client[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").upper().replace("-", "_")
        own = name in {"CONTENT_TYPE", "CONTENT_LENGTH"}
        environ[name if own else f"HTTP_{name}"] = value.decode("latin-1")
    return environ


bare = Adapter(ways.bare)


def __getattr__(name: str) -> Adapter:
    """Open the store only where the product is asked for: `benchmarks.adapter:product`."""
    if name == "product":
        import main  # noqa: PLC0415

        return Adapter(main.app)
    raise AttributeError(name)

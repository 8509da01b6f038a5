"""Record the address of the running server in the data folder.

This module owns the file `address` in the data folder: one line with the local URL and, if the
server has a public URL, one line with that URL. Commands read this file to print links to the
running server. A killed server leaves the file behind, so an address is valid only if a server
answers there.
"""

import contextlib
import http.client
import os
from pathlib import Path
from urllib.parse import urlsplit

_NAME = "address"
_PATIENCE = 10.0  # Seconds that a local server on a busy machine may take to answer


def note(folder: Path, url: str, public: str = "") -> None:
    """Record that a server answers at `url`, for example `http://127.0.0.1:8080/`.

    `public` is the URL under which people reach it; the server may refuse other host names.
    """
    own = folder / f"{_NAME}.{os.getpid()}"
    with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(f"{url}\n{public}\n")
    # A rename is atomic, so no process reads a partial address.
    own.replace(folder / _NAME)


def find(folder: Path) -> str:
    """Return the noted address, preferably the public address, or "" if no server answers there."""
    with contextlib.suppress(OSError, ValueError):
        url, *public = (folder / _NAME).read_text(encoding="ascii").split()
        return [url, *public][-1] if _is_answering(url) else ""
    return ""


def _is_answering(url: str) -> bool:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_PATIENCE)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.client.OK
    except http.client.HTTPException:
        return False
    finally:
        connection.close()

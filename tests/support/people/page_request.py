"""One page as clients ask for it: its address, and its body without the coding it came in."""

import gzip

from werkzeug.test import TestResponse

PAGE = "/api/v1/sites/demo/comments?thread=page"


def plain(response: TestResponse) -> bytes:
    """The body without its coding."""
    return (
        gzip.decompress(response.data)
        if "Content-Encoding" in response.headers
        else (response.data)
    )

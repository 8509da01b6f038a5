"""Provide the URL of a page of comments, and decompress the page's body."""

import gzip

from werkzeug.test import TestResponse

PAGE = "/api/v1/sites/demo/comments?thread=page"


def plain(response: TestResponse) -> bytes:
    """Return the body with its content coding removed."""
    return (
        gzip.decompress(response.data)
        if "Content-Encoding" in response.headers
        else (response.data)
    )

"""Decode the parameters of a query that name a thread (`thread` or `page`), and the page number.

These functions take undecoded bytes because frameworks decode leniently: they convert `%ff` to
U+FFFD, so different ids would become the same id. A `+` is a space, as in every form-encoded query.
"""

import re
from urllib.parse import unquote_to_bytes

from comments import errors
from comments.domain.ids import thread_ids
from comments.domain.text.addresses import percent_encoding

_DIGITS = re.compile("-?[0-9]+")


def thread(query_string: bytes, site: thread_ids.SiteRules) -> str:
    """Return the canonical id of the thread that `thread` or `page` names in a raw query string.

    Raises:
        errors.BadInput: the query contains neither parameter or both, it contains one of them
            twice, or the value is not strictly percent-encoded UTF-8.
    """
    values: dict[str, str] = {}
    for piece in query_string.split(b"&"):
        key, _, value = piece.partition(b"=")
        name = _parameter(key)
        if name is None:
            continue
        if name in values:
            raise errors.BadInput(name, "duplicate-field")
        if values:
            raise errors.BadInput(name, "conflicting-fields", other=next(iter(values)))
        values[name] = _decode(name, value)
    if "thread" in values:
        return thread_ids.canonical_id(values["thread"])
    if "page" not in values:
        raise errors.BadInput("thread", "no-thread")
    return thread_ids.page_id(values["page"], site)


def split_page_number(query_string: bytes) -> tuple[bytes, str | None]:
    """Split a raw query into the parts that name the thread and the number of a page.

    A `page` usually names a thread by the URL of its page. There are two exceptions: a `page` that
    consists of digits is a number, and if `thread` names the thread, any `page` without a slash is
    a number. The number is returned as text, which may be malformed.

    Raises:
        errors.BadInput: there is more than one number, or a number is not percent-encoded UTF-8.
    """
    pieces = [(piece, *piece.partition(b"=")[::2]) for piece in query_string.split(b"&")]
    has_thread = any(_parameter(key) == "thread" for _, key, _ in pieces)
    rest: list[bytes] = []
    numbers: list[str] = []
    for piece, key, value in pieces:
        text = _decode("page", value) if _parameter(key) == "page" else "/"
        if _DIGITS.fullmatch(text) or (has_thread and "/" not in text):
            numbers.append(text)
        else:
            rest.append(piece)
    if len(numbers) > 1:
        raise errors.BadInput("page", "duplicate-field")
    return b"&".join(rest), numbers[0] if numbers else None


def _parameter(key: bytes) -> str | None:
    """Return the parameter that a key names.

    The key is decoded first, so encoded letters cannot hide a second parameter.
    """
    name = unquote_to_bytes(key)
    return {b"thread": "thread", b"page": "page"}.get(name)


def _decode(field: str, value: bytes) -> str:
    if percent_encoding.STRAY.search(value.decode("latin-1")):
        raise errors.BadInput(field, "bad-percent-encoding")
    try:
        return unquote_to_bytes(value.replace(b"+", b" ")).decode()
    except UnicodeDecodeError as error:
        raise errors.BadInput(field, "not-utf8") from error

"""Decode the parameters of a query that name a thread (`thread` or `page`), and the page number.

These functions take undecoded bytes because frameworks decode leniently: they convert `%ff` to
U+FFFD, so different ids would become the same id. A `+` is a space, as in every form-encoded query.
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from comments import errors
from comments.domain.ids import thread_ids
from comments.domain.text.addresses import percent_encoding

_DIGITS = re.compile("-?[0-9]+")


def thread(parameters: Mapping[str, str], site: thread_ids.SiteRules) -> str:
    """Return the canonical id of the thread that `thread` or `page` names.

    The values of both parameters are as sent, with each byte as a Latin-1 character.

    Raises:
        errors.BadInput: there is neither parameter or both, or the value is not strictly
            percent-encoded UTF-8.
    """
    named = [name for name in ("thread", "page") if name in parameters]
    if not named:
        raise errors.BadInput("thread", "no-thread")
    if len(named) > 1:
        raise errors.BadInput("page", "conflicting-fields", other="thread")
    value = decode(named[0], parameters[named[0]].encode("latin-1"))
    if named == ["thread"]:
        return thread_ids.canonical_id(value)
    return thread_ids.page_id(value, site)


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
        text = decode("page", value) if _parameter(key) == "page" else "/"
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


def decode(field: str, value: bytes) -> str:
    """Decode a percent-encoded value.

    Raises:
        errors.BadInput: the encoding is not valid, or the text is not UTF-8.
    """
    if percent_encoding.STRAY.search(value.decode("latin-1")):
        raise errors.BadInput(field, "bad-percent-encoding")
    try:
        return unquote_to_bytes(value.replace(b"+", b" ")).decode()
    except UnicodeDecodeError as error:
        raise errors.BadInput(field, "not-utf8") from error

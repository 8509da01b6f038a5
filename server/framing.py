"""Framing: where a request ends in bytes that arrive piece by piece.

Finds the end of a head and decodes chunked bodies (RFC 9112, section 7.1). gunicorn parses heads
and trailers; its chunk reader blocks until the client sends, which the event loop must not do.

Invariants:

1. Only a body that follows the RFC is accepted: each size consists of hexadecimal digits only, each
   chunk ends with CRLF, and no line ends with a bare LF. Any other body raises `ParseException`.
2. At most `most + 1` bytes are kept, regardless of the sizes that the client declares.
"""

import re
from collections.abc import Callable

from gunicorn.http import errors  # type: ignore[import-untyped]
from gunicorn.http.body import CHUNK_EXT_RE  # type: ignore[import-untyped]

_END = b"\r\n\r\n"
_LINE = b"\r\n"
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")
_BARE = re.compile(rb"(?<!\r)\n")
_NO_TOKEN = re.compile(rb"[^\r!#$%&'*+\-.^_`|~0-9A-Za-z]")
_LONGEST_LINE = 1024  # bytes of a chunk size with its extensions
_LONGEST_TRAILERS = 8 * 1024


def head_end(buffer: bytearray, seen: int) -> int:
    """Return the length of the head at the start of a buffer; -1 if the end of the head is missing.

    An earlier call has already searched the first `seen` bytes.

    Raises:
        ParseException: these bytes cannot become a head.
    """
    # RFC 9112, section 2.2: one empty line may precede a request.
    start = len(_LINE) if buffer.startswith(_LINE) else 0
    end = buffer.find(_END, max(start, seen - len(_END) + 1))
    if end >= 0:
        return end + len(_END)
    if _NO_TOKEN.match(buffer):
        raise errors.InvalidRequestLine("not a method")
    if _BARE.search(buffer, seen):
        raise errors.InvalidRequestLine("bare LF as line terminator")
    return -1


class Chunks:
    """A chunked body, taken from a buffer as it fills.

    Args:
        check: parses the trailers, and raises if they are malformed.
        most: bytes of the body to keep. A longer body is cut, for the application to refuse.
    """

    def __init__(self, check: Callable[[bytes], object], most: int) -> None:
        self.body = bytearray()
        self.is_cut = False
        self._check = check
        self._most = most
        self._step: Callable[[bytearray], bool] = self._size
        self._left = 0
        self._is_done = False

    def take(self, buffer: bytearray) -> bool:
        """Move the bytes of the body out of the buffer; return whether the body is complete.

        Raises:
            ParseException: this is not a chunked body.
        """
        while not self._is_done and self._step(buffer):
            pass
        return self._is_done

    def _size(self, buffer: bytearray) -> bool:
        line = _line(buffer, _LONGEST_LINE)
        if line is None:
            return False
        size, semicolon, extension = line.partition(b";")
        size = size.rstrip(b" \t") if semicolon else size
        if not _SIZE.fullmatch(size):
            raise errors.InvalidChunkSize(size)
        if not CHUNK_EXT_RE.fullmatch(semicolon + extension):
            raise errors.InvalidChunkExtension("invalid chunk extension")
        self._left = int(size, 16)
        self._step = self._data if self._left else self._trailers
        return True

    def _data(self, buffer: bytearray) -> bool:
        room = self._most + 1 - len(self.body)
        taken = min(self._left, len(buffer), room)
        self.body += buffer[:taken]
        del buffer[:taken]
        self._left -= taken
        if len(self.body) > self._most:
            self.is_cut = self._is_done = True
            return False
        if not self._left:
            self._step = self._data_end
        return bool(taken)

    def _data_end(self, buffer: bytearray) -> bool:
        if not _LINE.startswith(bytes(buffer[: len(_LINE)])):
            raise errors.ChunkMissingTerminator(bytes(buffer[: len(_LINE)]))
        if len(buffer) < len(_LINE):
            return False
        del buffer[: len(_LINE)]
        self._step = self._size
        return True

    def _trailers(self, buffer: bytearray) -> bool:
        if buffer.startswith(_LINE):
            del buffer[: len(_LINE)]
            self._is_done = True
            return False
        end = buffer.find(_END)
        if end > _LONGEST_TRAILERS or (end < 0 and len(buffer) > _LONGEST_TRAILERS):
            raise errors.LimitRequestHeaders("trailers are too long")
        if _BARE.search(buffer, 0, end if end >= 0 else len(buffer)):
            raise errors.InvalidHeader("bare LF as line terminator")
        if end >= 0:
            self._check(bytes(buffer[:end]))
            del buffer[: end + len(_END)]
            self._is_done = True
        return False


def _line(buffer: bytearray, longest: int) -> bytes | None:
    """Remove a line from the buffer and return it without its end; None if the end is missing."""
    end = buffer.find(_LINE, 0, longest + len(_LINE))
    if end < 0:
        if len(buffer) > longest or _BARE.search(buffer):
            raise errors.InvalidChunkSize(bytes(buffer[:longest]))
        return None
    line = bytes(buffer[:end])
    del buffer[: end + len(_LINE)]
    return line

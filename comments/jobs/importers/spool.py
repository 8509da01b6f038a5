"""A temporary file of comments between the two passes, so that memory holds only their links.

It has no name anyone could open, and goes with the process whatever happens.
"""

import tempfile

import msgspec

from comments.domain import records


class Spool:
    """Comments by the place where they were put."""

    def __init__(self) -> None:
        # Open as long as the spool; its owner closes it.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._end = 0
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(records.ImportedComment)

    def close(self) -> None:
        """Give the file back. Closing again does nothing."""
        self._file.close()

    def add(self, comment: records.ImportedComment) -> tuple[int, int]:
        """Add a comment; return its place: offset and length in bytes."""
        data = self._encoder.encode(comment)
        place = (self._end, len(data))
        self._file.seek(self._end)
        self._file.write(data)
        self._end += len(data)
        return place

    def get(self, place: tuple[int, int]) -> records.ImportedComment:
        """Read a comment back."""
        offset, length = place
        self._file.seek(offset)
        return self._decoder.decode(self._file.read(length))

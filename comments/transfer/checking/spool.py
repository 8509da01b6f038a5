"""Store an import's comments in a temporary file between the two passes, to save memory.

The file has no name, so no other process can open it, and it disappears when the process ends.
"""

import tempfile

import msgspec

from comments.domain import decoders, records


class Spool:
    """A temporary file of comments, which are addressed by offset and length."""

    def __init__(self) -> None:
        # The file stays open until `close`.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._end = 0
        self._is_at_end = True
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = decoders.msgpack(records.ImportedComment)

    def close(self) -> None:
        """Delete the file. Further calls do nothing."""
        self._file.close()

    def add(self, comment: records.ImportedComment) -> tuple[int, int]:
        """Add a comment and return its place, which is its offset and length in bytes."""
        data = self._encoder.encode(comment)
        place = (self._end, len(data))
        if not self._is_at_end:
            self._file.seek(self._end)
            self._is_at_end = True
        self._file.write(data)
        self._end += len(data)
        return place

    def get(self, place: tuple[int, int]) -> records.ImportedComment:
        """Read the comment at a place."""
        offset, length = place
        self._is_at_end = False
        self._file.seek(offset)
        return self._decoder.decode(self._file.read(length))

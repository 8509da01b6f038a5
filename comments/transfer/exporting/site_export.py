"""Write a site to a file in one of the formats."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple, Protocol

from comments.transfer.exporting import (
    export_file,
    export_lines,
    json_lines_export,
    site_contents,
    wxr_export,
)


class Exported(NamedTuple):
    """The numbers of exported threads and comments."""

    threads: int
    comments: int


class Writer(Protocol):
    """Writes the lines of a site to a file in one format."""

    def __call__(
        self,
        lines: Iterator[export_lines.Line],
        file: export_file.Output,
        header: export_lines.HeaderLine,
    ) -> export_lines.EndLine:
        """Write the lines, and return the end line, which counts what was written.

        `header` describes the export.
        """


FORMATS: dict[str, Writer] = {"jsonl": json_lines_export.write, "wxr": wxr_export.write}


class SiteExport(NamedTuple):
    """An export of a site. `secret` decrypts addresses, and `now` is the time in the header."""

    site: str
    write_lines: Writer
    choices: site_contents.Choices
    secret: str
    now: datetime

    def write(
        self, opened: Callable[[], contextlib.AbstractContextManager[export_file.Output]]
    ) -> Exported:
        """Write the site to a file.

        If the store fails before the end, the file is opened again and written from the start.

        Raises:
            errors.NotFound: the site does not exist.
            errors.Overloaded: the store did not answer in time.
            errors.ExportFailed: the file cannot be written.
        """
        header = export_lines.HeaderLine(
            export_lines.FORMAT,
            export_lines.VERSION,
            self.site,
            self.now,
            includes=self.choices.names(),
        )

        def use(lines: Iterator[export_lines.Line]) -> export_lines.EndLine:
            with opened() as file:
                return self.write_lines(lines, file, header)

        end = site_contents.read(
            self.site, use, choices=self.choices, secret=self.secret, now=self.now
        )
        return Exported(end.threads or 0, end.comments or 0)

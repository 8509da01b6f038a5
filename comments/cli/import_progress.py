"""Show the progress of a long command, and an estimate of the time left, on standard error.

On a terminal, the progress is a bar. Otherwise, it is a line every 10 seconds.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from comments.domain.text.shown_values import quantity
from comments.transfer.importing import time_left

if TYPE_CHECKING:
    import rich.console

_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_PAUSE = 10.0  # Seconds between two lines.

Advance = Callable[[int], None]


def lines_in(path: Path) -> int | None:
    """Count the lines of a file; None for a compressed file, whose lines would have to be unpacked.

    A file that cannot be read has no lines: its reader reports the error.
    """
    lines = 0
    with contextlib.suppress(OSError), path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if not lines and chunk.startswith(_GZIP):
                return None
            lines += chunk.count(b"\n")
    return lines


@contextlib.contextmanager
def showing(
    what: str, total: int | None, noun: str, clock: Callable[[], float] = time.monotonic
) -> Iterator[Advance]:
    """Yield a function that counts finished parts, such as comments.

    `total` is None if the number of all parts is not known. `what` describes the task ("Importing")
    and `noun` one part.
    """
    import rich.console

    terminal = rich.console.Console(stderr=True)
    if terminal.is_terminal:
        with _bar(terminal, what, total, noun) as advance:
            yield advance
    else:
        yield _Lines(what, total, noun, clock).advance


@contextlib.contextmanager
def _bar(
    terminal: "rich.console.Console", what: str, total: int | None, noun: str
) -> Iterator[Advance]:
    import rich.progress

    class Speed(rich.progress.ProgressColumn):
        """The finished parts per second."""

        def render(self, task: rich.progress.Task) -> str:
            speed = task.finished_speed or task.speed
            return f"{speed:,.0f} {noun}s/s" if speed else ""

    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.TaskProgressColumn(),
        Speed(),
        rich.progress.TimeRemainingColumn(),
    )
    with rich.progress.Progress(*columns, console=terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


class _Lines:
    """Shows the progress in lines. `clock` returns seconds."""

    def __init__(self, what: str, total: int | None, noun: str, clock: Callable[[], float]) -> None:
        self._what = what
        self._total = total
        self._noun = noun
        self._clock = clock
        self._began = self._said = clock()
        self._done = 0

    def advance(self, more: int) -> None:
        """Count finished parts."""
        self._done += more
        now = self._clock()
        if now - self._said >= _PAUSE:
            self._said = now
            click.echo(f"{self._what}: {self._line(now)}", err=True)

    def _line(self, now: float) -> str:
        if self._total is None:
            return quantity(f"{self._done:,}", self._noun)
        done = min(self._done, self._total)
        parts = quantity(f"{self._total:,}", self._noun)
        line = f"{done:,} of {parts} ({time_left.percent(done, self._total)}%)"
        left = time_left.seconds(done, self._total, now - self._began)
        if left is None:
            return line
        number, unit = time_left.round_seconds(left)
        return f"{line}, about {quantity(number, unit)} left"

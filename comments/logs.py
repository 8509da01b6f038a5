"""Logging: one line of JSON per message, without personal data.

    {"time":"2026-01-02T03:04:05.678Z","severity":"ERROR","logger":"comments.web.http.problems",
     "message":"GET /embed/<site_id> failed: 500","error":"ValueError",
     "at":["comments/web/embedding/embed.py:44 page","comments/reading/thread_pages.py:88 listing"]}

The field names follow Cloud Logging. The log must reveal nothing about people who write or read
comments: no text, address, network or token.

Invariant: For an exception, only the exception's class and stack are logged, because its message
and the source lines may quote user input
(test_logs.py::test_an_error_is_logged_as_its_class_and_location).

Messages of this project are logged in full, so they may contain only routes, internal ids and
numbers. A library's message may contain parts of a request, so only its template is logged, without
the values. If the text already contains the values, only the place of the call is logged.
"""

import logging
import re
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

_OURS = {"flatthread", "comments", "datastore_emulator"}
_SERVER = "gunicorn"
_ROOT = Path(__file__).parent.parent
_MOST_PLACES = 20  # The number of innermost stack frames to log.
_TELLING = re.compile("request|exception|header", re.IGNORECASE)
_UNSAID = "message withheld"
_log = logging.getLogger("flatthread")


class Lines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        # Import msgspec late, because help texts and completion log nothing.
        import msgspec  # noqa: PLC0415

        return msgspec.json.encode(self.loggable(record)).decode()

    def loggable(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return the parts of a record that may be logged."""
        when = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "severity": record.levelname,
            "logger": record.name,
            "message": _message(record),
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line["error"] = type(error).__name__
            line["at"] = _places(error.__traceback__)
        elif line["message"] == _UNSAID:
            line["at"] = [_place(record.pathname, record.lineno, record.funcName)]
        return line


class Words(Lines):
    """Formats records for a person at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message and, below it, the place of an error."""
        line = self.loggable(record)
        error = [f"  {line['error']}"] if "error" in line else []
        places = [f"    {place}" for place in line.get("at", ())]
        return "\n".join([line["message"], *error, *places])


def to_stderr(*streams: TextIO) -> None:
    """Send all log messages of this process to standard error.

    The format is plain text if one of `streams` is a terminal, and JSON otherwise. Existing logging
    configuration is kept, except that gunicorn's handlers get the same format.
    """
    form = Words() if any(stream.isatty() for stream in streams) else Lines()
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(form)
        root.addHandler(handler)
    for older in logging.getLogger("gunicorn.error").handlers:
        if getattr(older, "_gunicorn", False):
            older.setFormatter(form)
    if _log.level == logging.NOTSET:
        _log.setLevel(logging.INFO)
    threading.excepthook = _report_thread


def _report_thread(ended: "threading.ExceptHookArgs") -> None:
    if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
        _log.error("A thread ended with an error.", exc_info=ended.exc_value)


def _message(record: logging.LogRecord) -> str:
    owner = record.name.partition(".")[0]
    if owner in _OURS:
        return record.getMessage()
    template = record.msg if isinstance(record.msg, str) else _UNSAID
    if owner == _SERVER:
        return _of_server(template, record)
    return template if record.args else _UNSAID


def _of_server(template: str, record: logging.LogRecord) -> str:
    """Return gunicorn's message, without values if it may be about a request."""
    if record.args and not _TELLING.search(template):
        return record.getMessage()
    # One of gunicorn's messages already contains an address and part of a request.
    return template.partition(" from ip=")[0]


def _places(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace)[-_MOST_PLACES:]
    return [_place(frame.filename, frame.lineno, frame.name) for frame in frames]


def _place(file: str, line: int | None, name: str) -> str:
    path = Path(file)
    if path.is_relative_to(_ROOT) and ".venv" not in path.parts:
        return f"{path.relative_to(_ROOT)}:{line} {name}"
    # For a library, log only the file and its folder, not the full path on this machine.
    return f"{'/'.join(path.parts[-2:])}:{line} {name}"

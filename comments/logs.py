"""How the program speaks to its log: a line of JSON for each message, and nothing personal in it.

    {"time":"2026-01-02T03:04:05.678Z","severity":"ERROR","logger":"comments.web.http.problems",
     "message":"GET /embed/<site_id> failed: 500","error":"ValueError",
     "at":["comments/web/public/embed.py:44 page","comments/reading/thread_pages.py:88 listing"]}

The names are those that Cloud Logging knows. Who reads a log must learn nothing of who wrote or
read comments: no text, address, network or token. What must stay true:

- Of an exception the line has its class and where it came from, never its words or a line of
  source: those may quote what somebody sent.
- Our own messages are given whole; whoever writes one sees to it that it names routes, ids of ours
  and numbers only.
- What a library says may hold what a request held. It is given without the values put into it; a
  text that has them in it already is not given at all, only where it was said.
"""

import logging
import re
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import msgspec

_OURS = {"flatthread", "comments", "emulator"}
_SERVER = "gunicorn"
_ROOT = Path(__file__).parent.parent
_MOST_PLACES = 20  # the innermost ones
_TELLING = re.compile("request|exception|header", re.IGNORECASE)
_UNSAID = "something that is not repeated here"
_log = logging.getLogger("flatthread")


class Lines(logging.Formatter):
    """Makes a line of JSON of a record."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        return msgspec.json.encode(self.told(record)).decode()

    def told(self, record: logging.LogRecord) -> dict[str, Any]:
        """What may be told of it."""
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
    """Says the same to somebody who sits at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """The message, and below it where an error came from."""
        line = self.told(record)
        error = [f"  {line['error']}"] if "error" in line else []
        places = [f"    {each}" for each in line.get("at", ())]
        return "\n".join([line["message"], *error, *places])


def to_stderr(*streams: TextIO) -> None:
    """Have everything that is logged in this process written to standard error.

    A person reads it if one of `streams` is a terminal, and gets words; else it is lines of JSON.
    Logging that was configured before stays as it is; what gunicorn configures by itself does not
    count as such.
    """
    form = Words() if any(stream.isatty() for stream in streams) else Lines()
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(form)
        root.addHandler(handler)
    for each in logging.getLogger("gunicorn.error").handlers:
        if getattr(each, "_gunicorn", False):
            each.setFormatter(form)
    if _log.level == logging.NOTSET:
        _log.setLevel(logging.INFO)
    threading.excepthook = _report_thread


def _report_thread(ended: "threading.ExceptHookArgs") -> None:
    if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
        _log.error("a thread ended with an error", exc_info=ended.exc_value)


def _message(record: logging.LogRecord) -> str:
    owner = record.name.partition(".")[0]
    if owner in _OURS:
        return record.getMessage()
    template = record.msg if isinstance(record.msg, str) else _UNSAID
    if owner == _SERVER:
        return _of_server(template, record)
    return template if record.args else _UNSAID


def _of_server(template: str, record: logging.LogRecord) -> str:
    """What gunicorn tells: of processes and signals, which are nobody's, but of requests too."""
    if record.args and not _TELLING.search(template):
        return record.getMessage()
    # The one text of its that has an address and a part of a request in it already.
    return template.partition(" from ip=")[0]


def _places(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace)[-_MOST_PLACES:]
    return [_place(each.filename, each.lineno, each.name) for each in frames]


def _place(file: str, line: int | None, name: str) -> str:
    path = Path(file)
    if path.is_relative_to(_ROOT) and ".venv" not in path.parts:
        return f"{path.relative_to(_ROOT)}:{line} {name}"
    # Of a library: what it is, not where this machine keeps it.
    return f"{'/'.join(path.parts[-2:])}:{line} {name}"

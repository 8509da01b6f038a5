"""Recognize the process that runs an import, so that a killed import does not seem to run."""

import os
import platform
from pathlib import Path

# Indexes of the state and the start time in /proc/PID/stat, counted after the program's name.
_STATE, _START = 0, 19


def own_mark() -> str:
    """Return a mark of this process: its host, its id and its start."""
    return f"{platform.node()} {os.getpid()} {_start_time(os.getpid())}"


def has_ended(mark: str) -> bool:
    """Return whether a process on this host has ended; False if that cannot be determined."""
    host, _, process = mark.rpartition(" ")[0].rpartition(" ")
    start = mark.rpartition(" ")[2]
    return bool(start) and host == platform.node() and _start_time(int(process)) != start


def _start_time(process: int) -> str:
    """Return the start time of a process; "" if it has ended, or the system has no /proc."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[_STATE] == "Z" else fields[_START]

"""The command line: `python -m emulator`.

`command_line` parses the flags and serves; `commands` runs a single task on a data file (export,
import, backup, restore, compact, check).

Invariants:

1. A wrong flag exits with 2, a fault of a file or the machine with 1, each with one line on stderr.
"""

"""The command line: `python -m emulator`.

`command_line` parses the flags and serves; `commands` runs a single task on a data file (export,
import, backup, restore, compact, check).

Invariants:

1. The exit status is 2 for a wrong flag and 1 for a fault of a file or the machine; both print one
   line on stderr.
"""

"""The command line: `python -m emulator`.

`command_line` parses the flags and serves; `commands` runs one task on a data file (export, import,
backup, restore, compact or check).

Invariants:

1. A wrong flag exits with status 2, and a file or machine error with status 1; both print one line
   to stderr.
"""

"""The command line: `python -m emulator`.

`command_line` parses the flags and serves; `commands` does one thing to a data file and ends
(export, import, backup, restore, compact, check).

Invariant: a wrong flag exits with 2, a fault of a file or the machine with 1, each with one line on
stderr.
"""

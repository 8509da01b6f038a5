"""The command line: `datastore-emulator`.

`flags` parses the arguments, `command_line` serves, alone or beside another program, and `commands`
runs one task on a data file (export, import, backup, restore, compact or check).

A wrong flag exits with status 2, and a file or machine error with status 1; both print one line to
stderr. A server prints one line to stdout, when it answers: the variables of its clients.
"""

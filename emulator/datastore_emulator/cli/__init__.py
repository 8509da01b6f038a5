"""The command line: `datastore-emulator`.

`flags` parses the arguments. `command_line` runs a server, alone or beside another program.
`commands` runs one task on a data file (export, import, backup, restore, compact or check).

A wrong flag exits with status 2, and a file or machine error with status 1; both print one line to
stderr. Once a server accepts requests, it prints one line to stdout: the environment variables for
its clients.
"""

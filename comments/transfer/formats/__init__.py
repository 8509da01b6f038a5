"""Read the exports of other systems: one module for each format.

`format_registry` lists the formats. Each module has a function `read(path)`, which yields the
threads and comments of a file (`import_source.Item`), or raises `errors.BadImport` with the place
in the file. If no fixed texts mark a format, its module also has a function `recognizes(head)`,
which tells from the first bytes of a file whether it seems to have this format.
"""

"""Read the exports of other systems: one module for each format.

`format_registry` lists the formats. Each module has a function `read(path)`. The function yields
the threads and comments of a file (`import_source.Item`), or raises `errors.BadImport` with the
place in the file. If the files of a format contain no fixed texts that identify it, its module also
has a function `recognizes(head)`. This second function returns whether a file that begins with
these bytes seems to have this format.
"""

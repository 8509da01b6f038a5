"""Read the exports of other systems: one module for each format.

`format_registry` lists the formats. Each module has two functions:

    read(path)        yields the threads and comments of a file (`import_source.Item`)
    recognizes(head)  tells from the first bytes of a file whether it has this format
"""

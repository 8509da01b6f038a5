"""Import comments from other systems, in two passes over one file.

`checking` reads and checks the whole file without storing anything; `import_writer` stores the
comments. `formats` has one module for each format, which yields the records defined in
`import_source`; `parsing` contains the readers of XML, JSON, CSV and SQLite that the formats share.
A `running_import` records in the `import_journal` what it adds. `import_undo` removes it again, and
deletes the record when the import can no longer be undone.

An interrupted import can be continued by running it again, and repeating a finished import adds
nothing.
"""

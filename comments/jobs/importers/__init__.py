"""Import comments from other systems, in two passes over one file.

`checking` reads and checks the whole file without storing anything; `import_writer` stores the
comments. `formats` has one module for each format, which yields the records defined in
`import_source`; `parsing` has the readers of XML and JSON that the formats share. `import_journal`
records what each import adds, `import_undo` removes it again, and `import_expiry` ends the time in
which this is possible.

Invariants:

1. An interrupted import can be continued by running it again, and repeating a finished import adds
   nothing.
"""

"""Import comments from other systems, in two passes over one file.

`import_plan` reads and checks the whole file without storing anything; `import_writer` stores the
comments. Each format has a module (`disqus`, `wordpress`) that yields the records defined in
`import_source`. `cli/import_commands` lists the formats.

Invariants:

1. An interrupted import can be continued by running it again, and repeating a finished import adds
   nothing.
"""

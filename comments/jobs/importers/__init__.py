"""Import the comments of other systems, in two passes over one file.

`import_plan` reads and checks everything and stores nothing; `import_writer` writes. Each format
has a module (`disqus`, `wordpress`) that yields the records defined in `import_source`.
`cli/import_commands` lists the formats.

Invariants:

1. An interrupted import continues where it stopped, and an import that runs again adds nothing.
"""

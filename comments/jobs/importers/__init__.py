"""Taking over the comments of other systems, in two passes over one file.

`import_plan` reads and checks everything and stores nothing; `import_writer` writes. A module for
each format (`disqus`, `wordpress`) yields what `import_source` describes; `cli/import_commands`
lists the formats.

Invariant: an import that was interrupted goes on where it stopped; one that ran twice adds nothing.
"""

"""First pass of an import: read and check a whole file without storing anything.

Use `checked_import`: it reads a file and yields the comments to store in batches
(`import_batches`). `import_plan` takes what the reader of a format yields, and returns the threads.
`import_authors` and `import_bodies` convert authors and texts, `page_mapping` converts the
addresses of pages, and `doubled_posts` finds posts that were sent twice. `write_order` sorts the
comments, `spool` keeps their texts in a temporary file, and `import_report` reports the results to
the operator.

Invariants:

1. Nothing in this package writes to the store.
"""

"""First pass of an import: read and check a whole file without storing anything.

Use `checked_import`: it reads a file and yields the comments to store in batches
(`import_batches`). `import_plan` takes what the reader of a format yields, and returns the threads
to store. `comment_conversion` converts comments, with their authors (`import_authors`) and texts
(`import_bodies`). `source_pages` names the threads, and `page_mapping` converts the addresses of
pages. `doubled_posts` finds posts that were sent twice, and `write_order` sorts the comments.
`spool` keeps the comments in a temporary file, and `import_report` reports the results to the
operator.
"""

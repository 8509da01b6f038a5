"""Move data in and out: import from other systems, undo imports, export sites and personal data.

Each module in `formats` reads one format and yields the records defined in `import_source`;
`parsing` contains the readers of XML, JSON, CSV and SQLite that the formats share. `checking` reads
and checks a whole file without storing anything, and `importing` stores the comments that were
read. `uploads` imports files from the console, `proposals` suggests how to map the addresses of
pages, and `verification` compares an import with its file. `moves` moves threads to other
addresses. `exporting` writes a whole website to a file; `own_format` reads such a file again.
"""

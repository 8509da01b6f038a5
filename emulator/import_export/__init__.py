"""Bulk import and export of entities.

`json_lines` writes and reads entities as lines of JSON; `bulk_load` stores many entities faster
than commits do. `export_folder` maps the URLs of exports to files; `export_files` writes and reads
the two files of an export.

Invariants:

1. An import is stored completely or not at all, unless the caller asks for batches.
2. No URL leads out of the exports folder.
3. An export gets its final name only when its files are on disk.
"""

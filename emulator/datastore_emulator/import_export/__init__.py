"""Bulk import and export of entities.

`json_lines` writes and reads entities as lines of JSON; `bulk_load` stores many entities faster
than commits do. `export_folder` maps export URLs to files; `export_files` writes and reads the two
files of an export.

An import is stored either completely or not at all, unless the caller requests batches.
"""

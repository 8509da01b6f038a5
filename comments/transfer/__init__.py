"""Move data in and out: imports from other systems, their undo, exports, personal data.

`formats` has one module for each format, which yields the records defined in `import_source`;
`parsing` contains the readers of XML, JSON, CSV and SQLite that the formats share. `checking` reads
and checks a whole file without storing anything, and `importing` stores what it found. `uploads`
imports files from the console, `proposals` suggests how pages map, and `verification` compares an
import with its file. `exporting` writes a whole website to a file; `own_format` reads it again.
"""

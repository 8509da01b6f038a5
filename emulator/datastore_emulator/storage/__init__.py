"""The data file: the only package that uses SQLite.

Use `file_store` for snapshots and commits. `row_reader` and `row_writer` define the methods of
snapshots and commits, and `schema` defines the tables. `maintenance` backs up, restores and
compacts files; `inspection` checks a file. The other modules are internal: `index_writer` writes
and fills indexes, and `data_file` opens files. `group_commit` lets commits share a disk sync, and
`writer_lock` lets processes take turns. `background_checkpoint` and `write_ahead_log` keep the log
small, and `history` reads the past.

A snapshot never changes. Files of every released format can be opened.
"""

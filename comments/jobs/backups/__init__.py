"""Make backups of an embedded store, at any time or every night, and restore them.

Use `store_backup` to make a backup, `store_restore` to replace the store by one, and
`nightly_backup` for the backups that a running service makes itself. `backup_archive` defines
the format of the file. `engine_files` lists the operations of the embedded engine that these
modules need; `embedded_engine.py` implements them.

Invariants:

1. A file with a backup's final name is complete, and was read back and checked before it got that
   name.
2. A restore changes nothing before the whole backup is checked. If a restore is killed at any
   moment, the old store or the new one remains.
3. A backup never contains the secret.
4. Only old nightly backups are ever deleted, and only after a newer one is complete.
"""

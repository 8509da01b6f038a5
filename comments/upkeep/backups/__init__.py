"""Make backups of an embedded store, at any time or every night, and restore them.

Use `store_backup` to make a backup, `store_restore` to replace the store with one, and
`nightly_backup` for the backups that a running service makes automatically. `backup_archive`
defines the format of the file. `engine_files` lists the operations of the embedded engine that
these modules need; `embedded_engine.py` implements them.

Only old nightly backups are ever deleted, and only after a newer backup is complete.
"""

"""Backups of an embedded store: making them, at night too, and restoring them.

Use `store_backup` to make a backup, `store_restore` to replace the store by one, and
`nightly_backup` for the backups that a running service makes itself. `backup_archive` owns the form
of the file. `engine_files` says what these modules need of the embedded engine, which
`embedded_engine.py` provides.

Invariants:

1. A file with a backup's final name is complete, and was read back and checked before it got that
   name.
2. A restore changes nothing before the whole backup is checked. If a restore is killed at any
   moment, the old store or the new one remains.
3. A backup never contains the secret.
4. Only old nightly backups are ever deleted, and only after a newer one is complete.
"""

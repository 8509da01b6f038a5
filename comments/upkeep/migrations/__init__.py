"""Migrate stored data while the service runs, after a change of the release or of settings.

`upgrades` converts the rows of older releases and calls `rerendering`, which renders stored bodies
again. `rescheming` moves a site to another scheme of sort hashes, `reencryption` replaces an old
secret, and `thread_count_rows` completes the rows that contain the comment counts of threads.

Each migration can be interrupted at any point; then another process continues it, or an operator
runs it again. Until a migration has reached a row, the row is read in its previous form.
"""

"""Migrate stored data while the service runs, after a change of a release or of settings.

`upgrades` converts the rows of older releases and calls `rerendering`, which renders stored bodies
again. `rescheming` moves a site to another scheme of sort hashes, `reencryption` replaces an old
secret, and `thread_count_rows` completes the rows with the comment counts of threads.

Each migration can be interrupted at any point; another process continues it, or it is run again. A
row that a migration has not reached is read in its previous form.
"""

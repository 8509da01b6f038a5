"""Background work, and maintenance of the store: compaction, delivery, backups and repair.

The entry points are `scheduler`, which decides what is due and in which order, and `wiring`, which
lists a process's event handlers and channels. `background_worker`, cron and commands call the
scheduler. `backups` copies the store, `integrity` finds and repairs damage, and `migrations`
converts stored data to another form.

Each job can be killed at any point and run again.
"""

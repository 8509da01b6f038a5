"""Work outside of requests: compaction, delivery, repair, recounts, imports, erasure.

The entry points are `scheduler`, which decides what is due and in which order and is called by
`background_worker`, cron or a command, and `wiring`, which lists a process's event handlers and
channels.

Invariants:

1. Each job can be killed at any point and run again.
"""

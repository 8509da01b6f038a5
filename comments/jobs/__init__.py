"""Run work outside of requests: compaction, delivery, repair, recounts, imports, erasure.

Entry points: `scheduler` (decides what is due and in which order; called by `background_worker`,
cron or a command) and `wiring` (lists all event handlers and channels of a process).

Invariants:

1. Each job may be killed at any point and run again.
"""

"""What runs without a request: compaction, delivery, repair, recounts, imports, erasure.

Doors: `scheduler` (what is due, and in which order) driven by `background_worker`, by cron or by a
command; `wiring` (every event handler and channel of a process). Each job may be killed anywhere
and run again.
"""

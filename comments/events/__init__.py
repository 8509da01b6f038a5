"""Events after a commit: the outbox, its dispatcher, and the channels to external recipients.

A change writes its event in the same commit (`outbox`). The `dispatcher` delivers each event to
every handler at least once; a higher package supplies the handlers. A message to an external
recipient waits in the `message_queue` until the `message_sender` sends it through a channel:
webhooks or mail. `backlog` tracks the work that this process still has to do, and `dead_letters`
shows the events and messages whose delivery was given up.

Only `safe_http` sends requests to addresses that people entered.
"""

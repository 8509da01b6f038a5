"""Events after a commit: the outbox, its dispatcher, and the channels to recipients outside.

A change writes its event in the same commit (`outbox`). The `dispatcher` delivers each event to
every handler at least once; a higher package wires the handlers. A message to a recipient outside
waits in the `message_queue`; the `message_sender` sends it through a channel: `webhooks` or mail.
`backlog` is the work that this process still has to do, and `dead_letters` are the undelivered
events and messages.

Invariants:

1. An event exists only if its commit was applied.
2. An event is deleted only by the commit that notes its last handler as done, or by an operator.
3. Only `safe_http` makes requests to addresses that people entered.
"""

"""What follows a commit: the outbox, its dispatcher, and the ways to tell somebody outside.

A change writes its event in the same commit (`outbox`). The `dispatcher` takes each event to every
handler at least once; handlers are wired above this room. A message to a recipient outside waits
in the `message_queue` and is sent by the `message_sender` through a channel: `webhooks`, mail.
`backlog` is what this process has still to do; `dead_letters` is what was given up.

Invariants: an event without its commit is not there; an event is deleted only by the commit that
notes its last handler as done; requests to addresses that people gave leave through `safe_http`.
"""

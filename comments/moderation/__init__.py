"""Who may write what, and what moderators decide about it.

Doors: `screening` (what becomes of a text, by ban, rules and policy), `decisions` (approve, reject,
hide, restore, pin, undo), `review_queue`, `policy_changes`, `bans`, `reports`, `retention`.
`classifiers` asks services such as Akismet.

Invariant: every decision is one transaction with its entry in the audit log.
"""

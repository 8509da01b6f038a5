"""Decide who may write what, and carry out moderators' decisions.

Entry points: `screening` (decides about a text by ban, rules and policy), `decisions` (approve,
reject, hide, restore, pin, undo), `review_queue`, `policy_changes`, `bans`, `reports` and
`retention`. `classifiers` asks services such as Akismet.

Invariants:

1. Every decision is one transaction that also writes its entry in the audit log.
"""

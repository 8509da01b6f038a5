"""Screening of comments, and moderators' decisions about them.

The entry points are `screening` (decides the status of a text by bans, rules and policy),
`decisions` (approve, reject, hide, restore, pin, undo), `review_queue`, `thread_list`,
`policy_changes`, `bans`, `reports` and `retention`. `classifiers` asks services such as Akismet.

Every decision is one transaction that also writes an audit log entry.
"""

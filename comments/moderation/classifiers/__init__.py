"""Services outside that say whether a comment is spam.

Doors: `registration` (whom a site asks), `classifier_requests` (asks, and does what they say),
`classifier_answers` (what was said). `akismet` and `site_service` speak to one service each.

Invariant: an answer comes from a stranger. What is not exactly one of our verdicts counts as none.
"""

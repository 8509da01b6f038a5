"""Ask external services whether a comment is spam, and apply their verdicts.

Entry points: `registration` (which services a site uses), `classifier_requests` (asks them and
applies their verdicts), `classifier_answers` (stores their answers). `akismet` and `site_service`
implement the protocols of one service each.

Invariants:

1. Answers are untrusted input. An answer that is not exactly one of the defined verdicts is
   discarded.
"""

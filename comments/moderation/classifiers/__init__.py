"""Ask external services whether a comment is spam, and apply their verdicts.

Entry points: `registration` (registers the services of a site), `classifier_requests` (asks them
and applies their verdicts), `classifier_answers` (stores their answers). `akismet` and
`site_service` each implement the protocol of one service.

Invariants:

1. Answers are untrusted input. An answer is discarded unless it is exactly one of the defined
   verdicts.
"""

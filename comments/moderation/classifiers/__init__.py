"""Classifiers: external services that judge whether a comment is spam, and their verdicts.

The entry points are `registration` (registers a site's services), `classifier_requests` (asks them
and applies their verdicts) and `classifier_answers` (stores their answers). `akismet` and
`site_service` each implement the protocol of one service.
"""

"""Counters of comments that the owner of a site declares."""

"""Roles, the reasons why a comment is held, and the verdicts of classifiers (pure)."""

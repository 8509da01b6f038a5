"""Recognize the callers of the API by the tokens of readers, sites and moderators."""

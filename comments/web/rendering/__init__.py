"""Rendering that several pages share: texts, languages, labels and nested lists of comments."""

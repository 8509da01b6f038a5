"""The texts that people read, with one catalogue per language.

Entry points: `catalogue` for texts by key, `formats` for numbers and dates. Each language is a
folder of JSON files, one file per surface (widget, embed page, admin console, mail, feeds, errors).
"""

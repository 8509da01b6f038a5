"""Propose mappings for the pages of an export, from the pages alone (pure).

`mapping_proposals` is for other rooms: it collects the proposals and prints them.
"""

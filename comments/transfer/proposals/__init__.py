"""Propose mappings for the pages of an export, from the pages alone (pure).

Other packages use `mapping_proposals`, which collects the proposals and formats them.
"""

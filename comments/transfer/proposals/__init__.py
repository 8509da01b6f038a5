"""Propose mappings for the pages of an export, using only the pages themselves (pure).

Other packages use `mapping_proposals`, which collects the proposals and formats them.
"""

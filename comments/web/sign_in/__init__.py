"""Signing in: accounts' pages, providers, and the windows that pages of a site open.

`signed_in` finds the session and guards every page for owners and moderators.
"""

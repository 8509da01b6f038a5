"""Signing in: the pages for accounts, the providers, and the windows that pages of a site open.

`signed_in` finds the session and guards all pages for owners and moderators.
"""

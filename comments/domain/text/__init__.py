"""Texts that people enter: names, bodies, host names, mail addresses.

The entry points are `cleaning` for typed text, `rendering` for bodies as HTML, and `mail_addresses`
for addresses.
"""

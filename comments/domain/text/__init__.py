"""Texts that people enter: names, bodies, host names, mail addresses; and reports as text.

The entry points are `cleaning` for typed text, `rendering` for bodies as HTML, `mail_addresses` for
addresses, and `tables` for reports.
"""

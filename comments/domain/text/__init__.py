"""Texts that people enter: names, bodies, host names, mail addresses.

Entry points: `cleaning` for typed text, `rendering` for bodies as HTML, `mail_addresses` for
addresses.
"""

"""What people may write: names, bodies, host names, mail addresses.

Doors: `cleaning` for what is typed, `rendering` for bodies as HTML, `mail_addresses` for addresses.
"""

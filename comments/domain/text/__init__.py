"""What people may write: names, bodies, host names, mail addresses.

Doors: `sanitizing` for everything that is shown, `mail_addresses` for addresses.
"""

"""Mail as text, as bytes, and on its way to an SMTP server.

Doors: `compose` (the messages), `smtp` (sending), `mail_jobs` (the stored form of mail to send).
What people wrote goes through `plain_words` first, so that it brings no link and no header.
"""

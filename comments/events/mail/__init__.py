"""Mail as text, as bytes, and on its way to an SMTP server.

Doors: `compose` (what a mail says), `smtp` (hands it over), `mail_jobs` (the stored form of what is
to be mailed). People's words pass through `plain_words` first: they bring no link and no header.
"""

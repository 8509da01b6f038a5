"""Mail: its text, its bytes, and its delivery to an SMTP server.

Entry points: `compose` (the messages), `smtp` (sending), `mail_jobs` (the stored form of mail to
send). `plain_words` first cleans text that people wrote, so that it adds no link and no header.
"""

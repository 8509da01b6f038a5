"""Compose and encode mail, and send it to an SMTP server.

The entry points are `compose` (the messages), `comment_mail` (messages about comments) and `smtp`
(sending). `plain_words` first cleans all text that people wrote, so that such text cannot add a
link or a header. `events/mail_jobs` defines the stored form of mail that is still to be sent.
"""

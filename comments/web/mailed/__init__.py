"""The pages that links in mails open."""

"""Check passwords and authenticator codes, hash passwords, and count sign-in attempts."""

"""Signing in by name and password: the attempts, the hash, and codes of an authenticator."""

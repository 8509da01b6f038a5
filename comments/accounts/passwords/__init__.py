"""Sign in with name and password: attempts, hashes, and codes of an authenticator."""

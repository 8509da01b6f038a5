"""Change the scheme of a thread, which decides its sort hashes."""

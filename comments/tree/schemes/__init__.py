"""Change the scheme of a thread, which determines the thread's sort hashes."""

"""Ids of websites, threads, authors and imported comments, and sort hashes (pure)."""

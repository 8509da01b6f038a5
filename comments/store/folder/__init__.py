"""Manage the data folder: its permissions, the running server's address, and disk faults."""

"""Addresses that people enter: hosts, origins, percent-encoded paths, mail addresses (pure)."""

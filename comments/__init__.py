"""The comment backend.

A module imports only from lower layers; docs/architecture.md shows the layers.
"""

"""The comment backend. A module imports only from lower rows: docs/architecture.md draws them."""

"""The comment backend. docs/architecture.md draws the rows; a module imports only from lower ones."""

"""Change many comments at once: import comments, undo imports, and run jobs."""

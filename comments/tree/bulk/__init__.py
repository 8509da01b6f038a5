"""Change many comments at once: imports, their undo, and jobs."""

"""Keep data in the memory of a process: caches, copies of rows, and counts of commits."""

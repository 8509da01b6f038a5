"""What a process keeps in memory: caches, copies of rows, counts of commits."""

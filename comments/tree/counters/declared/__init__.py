"""Count comments by counters that the owner of a site declares."""

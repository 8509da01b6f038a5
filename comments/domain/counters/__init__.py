"""Define what counters and audiences count (pure)."""

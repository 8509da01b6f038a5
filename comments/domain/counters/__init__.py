"""What counters and audiences count (pure)."""

"""Values that reports show: tables, outcomes of deliveries, the time that is left (pure)."""

"""How the service scales: key ranges, monthly costs and very large data. See docs/scaling.md."""

"""Roles, reasons for holding comments, verdicts, and the table of operations (pure)."""

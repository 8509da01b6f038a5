"""Decode requests: bytes become a typed value, or an error that names the field."""

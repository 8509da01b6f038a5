"""The calls of `/api/v1`, the tokens of their callers, and their OpenAPI document."""

"""The calls of `/api/v1`, the tokens they take, and their OpenAPI document."""

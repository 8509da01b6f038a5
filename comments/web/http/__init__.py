"""Code that all views share: decoding, errors, headers, content codings and response caches.

Start with `decode` (converts bytes to typed values), `problems` (converts errors to RFC 9457
documents) and `responses` (handles ETags, codings and 304). The views define their own types.
"""

"""What every call shares: decoding, errors, headers, codings, caches of answers.

Doors: `decode` (bytes to typed values), `request_shapes` and `response_shapes` (the types),
`problems` (errors as RFC 9457 documents), `responses` (tags, codings, 304).
"""

"""Code that all views share: decoding, errors, headers, content codings and response caches.

Start with `decode` (converts bytes to typed values), `decode/request_shapes` and
`response_shapes` (the types), `problems` (errors as RFC 9457 documents) and `responses`
(ETags, codings, 304).
"""

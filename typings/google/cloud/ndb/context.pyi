class Context:
    transaction: bytes

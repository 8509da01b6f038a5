"""From the bytes of a request to one of our shapes, or an error that names the field."""

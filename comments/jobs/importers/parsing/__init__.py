"""Read XML, JSON, CSV and SQLite files as streams, in bounded memory, for `formats`."""

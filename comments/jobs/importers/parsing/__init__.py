"""Read XML and JSON files as streams, in bounded memory, for the modules of `formats`."""

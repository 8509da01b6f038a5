"""The data folder: permissions, the address of the running server, faults of the disk."""

"""Read the comments of a thread as readers see them: all in order, or single comments."""

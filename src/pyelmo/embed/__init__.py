"""Sentences to arrays: embedding text, and the files that hold the result."""

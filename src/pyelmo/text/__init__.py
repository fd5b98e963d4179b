"""Strings -> ids: splitting, characters, vocabularies, corpora. Numpy and the standard library, no torch."""

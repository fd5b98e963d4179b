"""Strings -> ids: tokens, characters and vocabularies, with numpy and the standard library only (no torch)."""

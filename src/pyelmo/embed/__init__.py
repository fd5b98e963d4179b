"""Sentences -> arrays -> files."""

"""Corpus -> checkpoint."""

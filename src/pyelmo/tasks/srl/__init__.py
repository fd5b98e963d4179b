"""Semantic role labelling."""

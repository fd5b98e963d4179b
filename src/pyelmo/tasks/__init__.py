"""Downstream tasks on top of the vectors: their data, their networks and how they are scored."""

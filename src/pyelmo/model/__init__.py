"""Ids -> layers: the paper's model, in its order."""

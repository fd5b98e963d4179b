"""Neighbours in context: an index of words in their sentences, and the search for those nearest to a word in another.

It needs faiss, the extra `neighbours`.
"""

from __future__ import annotations

from pyelmo.neighbours.build import build
from pyelmo.neighbours.export import export
from pyelmo.neighbours.search import Index, Neighbour, load

__all__ = ["Index", "Neighbour", "build", "export", "load"]

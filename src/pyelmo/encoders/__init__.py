"""Encoders: anything that gives words vectors, opened by name and called with tokenised sentences.

An ELMo model, static word vectors, CoVe and a transformers model all become one kind of object, so that the probes, the
downstream tasks and `elmo explore` can use any of them.
"""

from __future__ import annotations

from pyelmo.encoders.base import Encoder, NamedEncoder
from pyelmo.encoders.registry import open_encoder, open_encoders

__all__ = ["Encoder", "NamedEncoder", "open_encoder", "open_encoders"]

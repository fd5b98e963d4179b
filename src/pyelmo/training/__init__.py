"""Training of language models: a prepared corpus -> checkpoints -> a model, and the evaluation of models."""

from pyelmo.errors import require_torch

require_torch("Training")

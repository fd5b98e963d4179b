"""What all tasks share: settings, the task definition, the model, training, storage and metrics."""

from pyelmo.errors import require_torch

require_torch("A task network")

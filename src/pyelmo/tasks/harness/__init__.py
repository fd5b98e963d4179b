"""What all tasks share: settings, data, representations, training, storage and metrics."""

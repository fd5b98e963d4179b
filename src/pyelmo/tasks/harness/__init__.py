"""What all tasks share: settings, the task definition, the model, training, storage and metrics."""

"""Text files -> a prepared corpus -> training batches."""

"""Training of language models: a prepared corpus -> checkpoints -> a model, and the evaluation of models."""

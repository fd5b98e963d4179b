"""Natural language inference (textual entailment)."""

"""Files <-> a biLM: one foreign format per file, each a table of names."""

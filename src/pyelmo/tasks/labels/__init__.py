"""Labels of words and of whole examples: column files, spans, the CRF and classification."""

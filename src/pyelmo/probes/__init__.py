"""What the vectors of an encoder know, layer by layer: senses, parts of speech, contexts, misspellings, neighbours."""

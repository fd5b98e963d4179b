"""What the vectors of an encoder know, layer by layer: senses, parts of speech, words with two meanings, neighbours."""

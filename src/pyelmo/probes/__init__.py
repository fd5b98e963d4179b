"""What the vectors of an encoder know, layer by layer: word senses, parts of speech, words with two meanings."""

"""Probes of encoders, layer by layer: word senses, parts of speech, words in context, misspellings."""

"""Static vectors, one a word whatever stands around it: trained, read, written, asked and measured."""

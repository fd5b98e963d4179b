"""Question answering over a passage."""

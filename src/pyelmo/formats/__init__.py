"""Model files <-> a biLM: one file for each format, each with a table of the names in it."""

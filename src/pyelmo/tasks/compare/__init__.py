"""Compare runs and combine models: tables, the paired bootstrap and ensembles."""

"""Sentiment of reviews."""

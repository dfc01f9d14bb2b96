"""Recorded decisions, decided once more under another policy."""

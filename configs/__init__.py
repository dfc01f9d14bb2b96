"""Knobs declared once, presets, and the one loader."""

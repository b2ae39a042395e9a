"""The loops: stepping, evaluation and curves."""

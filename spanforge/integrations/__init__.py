"""Frameworks that are traced without a change to their callers: one file for each, imported inside its own start."""

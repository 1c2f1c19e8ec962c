"""Connections: accepted, read frame by frame in fair turns within a budget of memory, and written to in order."""

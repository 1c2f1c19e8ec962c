"""Consumers that run themselves: concurrent, in order, retrying, committing what is done."""

"""Consumers that people would otherwise write by hand: concurrent, in order, retrying, committing what is
done."""

"""Committed offsets: kept per group, topic and partition, expired when nobody needs them."""

"""Headrace: a Kafka-compatible message platform in Python."""

__version__ = "0.1.0"

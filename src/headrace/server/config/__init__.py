"""Kafka's settings: what they are called, what they mean, and which value holds."""

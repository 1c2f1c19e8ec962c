"""Kafka's settings: their names, their meaning, and which value applies."""

"""Telemetry of clients (KIP-714): who is asked for which metrics, and what each has pushed."""

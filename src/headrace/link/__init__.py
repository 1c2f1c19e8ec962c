"""The client half of the protocol, for everything in Headrace that speaks to brokers itself: settings, connections, routing."""

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
"""Where a broker listens by default."""

"""One module per API, generated; see `headrace.wire.schema` for how to read them."""

KAFKA = "4.4.0"
"""The version of Apache Kafka whose definitions these are."""

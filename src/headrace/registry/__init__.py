"""A schema registry over the compacted topic `_schemas`, with Confluent's API (docs/schema-registry.md)."""

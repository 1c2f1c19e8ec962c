"""Avro, JSON Schema and Protobuf: reading a schema, its canonical text, and whether one can read what another wrote."""

"""JSON over HTTP, described by OpenAPI."""

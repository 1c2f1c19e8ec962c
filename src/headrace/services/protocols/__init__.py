"""The ways to reach a service."""

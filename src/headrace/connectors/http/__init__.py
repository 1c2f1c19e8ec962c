"""HTTP: an endpoint that takes records in, polling, and webhooks."""

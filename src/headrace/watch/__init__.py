"""Looking after a running cluster."""

"""What a broker tells Prometheus: families of series read from the engines' counts when somebody scrapes, and the listener for it."""

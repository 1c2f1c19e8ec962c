"""Load tests: produce, consume, and the way from one to the other, with throughput and latency."""

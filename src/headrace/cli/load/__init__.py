"""Load tests: records in, records out, and there and back, with the numbers that tell how it went."""

"""What stands between a protocol and an implementation, or between a caller and a wire."""

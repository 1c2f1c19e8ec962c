"""What runs between a protocol and an implementation, or between a caller and the wire."""

"""Consumer groups: the classic and the consumer (KIP-848) protocols and committed offsets, as state machines."""

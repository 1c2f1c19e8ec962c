"""One partition's log on disk, in Kafka's own layout, and the data directories that hold many of them."""

"""What the commands ask of a cluster, as plain values: shared by `headrace …` and Kafka's tool names."""

"""What looks after a cluster from beside it, over Kafka's protocol only: Apache Kafka's clusters included."""

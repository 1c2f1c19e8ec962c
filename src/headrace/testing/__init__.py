"""Real parts for tests: a ZooKeeper server and brokers, started on free ports and stopped again."""

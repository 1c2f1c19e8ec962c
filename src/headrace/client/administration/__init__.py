"""What is asked of a cluster beside records, in plain values: topics, settings, groups, transactions, moves of replicas.

Each operation stands here once, as a function of a `Session`; `Admin` and the commands call it. What librdkafka has a call for
goes through librdkafka, the rest through `link/`.
"""

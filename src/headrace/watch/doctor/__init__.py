"""What is wrong with a cluster, its machine and its settings: each problem in one sentence, with its remedy.

One file per subject holds that subject's checks; `catalogue` lists them all and `examination` runs them. Everything is asked by
Kafka's protocol, so Apache Kafka's brokers are examined as well. Nothing is changed.
"""

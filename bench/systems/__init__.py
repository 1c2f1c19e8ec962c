"""The systems under measurement. Each starts as its makers ship it, on this machine, on a port of its own."""

from bench.systems.base import Running, System
from bench.systems.headrace import Headrace
from bench.systems.kafka import Kafka
from bench.systems.nats import Nats
from bench.systems.rabbitmq import RabbitMQ
from bench.systems.redis import Redis
from bench.systems.services import JavaDubbo, PythonGrpc
from bench.systems.spark import SparkKafka

ALL: tuple[type[System], ...] = (Headrace, Kafka, Redis, Nats, RabbitMQ)
# What tables may name: the brokers, and what services and Spark's data source are measured beside.
NAMED: tuple[type[System], ...] = (*ALL, JavaDubbo, PythonGrpc, SparkKafka)

__all__ = ["ALL", "NAMED", "Headrace", "Kafka", "Nats", "RabbitMQ", "Redis", "Running", "System"]

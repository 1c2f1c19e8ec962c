"""`make interop ARGS="--against kafka"` runs the Kafka programs against Apache Kafka, which proves the programs."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--against", default="headrace", choices=["headrace", "kafka"], help="the broker to test"
    )

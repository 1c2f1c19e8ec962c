"""`make interop ARGS="--against kafka"` runs the Kafka programs against Apache Kafka, which proves the programs."""

from collections.abc import Generator

import pytest

from bench.provision import Missing


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--against", default="headrace", choices=["headrace", "kafka"], help="the broker to test"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the machine lacks is one sentence, not a traceback."""
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(Missing):
        report.longrepr = str(call.excinfo.value)
    return report

"""Prometheus must be installed: rules and dashboards are tested with the real one."""

import shutil

import pytest


@pytest.fixture(scope="module")
def tools():
    missing = [each for each in ("prometheus", "promtool") if shutil.which(each) is None]
    if missing:
        pytest.fail(
            f"{missing[0]} is missing: apt-get install prometheus (or make servers as root)", pytrace=False
        )

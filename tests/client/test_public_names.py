"""The names of `headrace.client`: all of them are there, and each is imported only when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import headrace.client


def test_every_public_name_can_be_imported() -> None:
    for name in headrace.client.__all__:
        assert getattr(headrace.client, name) is not None
    assert set(headrace.client.__all__) <= set(dir(headrace.client))


def test_a_name_that_is_not_public_is_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Producers'"):
        _ = headrace.client.Producers  # type: ignore[attr-defined]


def test_importing_the_package_imports_none_of_its_modules() -> None:
    look = "import sys, headrace.client; print([m for m in sys.modules if m.startswith('headrace.client.')])"
    ran = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, timeout=120, check=True
    )
    assert ran.stdout.strip() == "[]"

"""What keeps Spark's Python processes quick to start and, when they are not, from all failing together."""

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

from headrace.streaming.interpreter import use, worker_python
from headrace.streaming.restarts import delay

LIB = Path(pyspark.__path__[0]) / "python" / "lib"
SHOW = "import os, sys, pyspark; print(pyspark.__file__); print(sys.pycache_prefix); print(os.environ['PYTHONPATH'])"


@pytest.fixture
def started(tmp_path):
    """What a process that Spark starts finds: where PySpark is, where its bytecode goes, and the rest of its path."""

    def start(**environment):
        zips = [str(LIB / "pyspark.zip"), *map(str, LIB.glob("py4j-*.zip")), "/of/the user", "/b"]
        done = subprocess.run(
            [worker_python(tmp_path), "-c", SHOW],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(zips), **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    return start


def test_sparks_processes_load_the_installed_pyspark_and_not_the_zip_that_is_compiled_each_time(started):
    assert started() == [pyspark.__file__, "None", "/of/the user:/b"]


def test_where_no_bytecode_may_be_beside_the_sources_it_is_kept_elsewhere(started, tmp_path):
    assert started(PYTHONDONTWRITEBYTECODE="1")[1] == str(tmp_path / "pycache")
    assert list((tmp_path / "pycache").rglob("pyspark/__init__.*.pyc"))


def test_an_interpreter_that_the_user_has_chosen_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python3-of-the-user")
    use(tmp_path)
    assert os.environ["PYSPARK_PYTHON"] == "/usr/bin/python3-of-the-user"
    monkeypatch.delenv("PYSPARK_PYTHON")
    use(tmp_path)
    assert os.environ["PYSPARK_PYTHON"] == str(tmp_path / "python")


def test_what_failed_together_is_not_tried_again_together():
    pauses = [[delay(failures) for _ in range(20)] for failures in range(12)]
    assert all(len(set(each)) == 20 for each in pauses)
    assert min(pauses[0]) >= 0.5
    assert max(pauses[-1]) <= 45

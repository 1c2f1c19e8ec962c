"""The examples of docs/testing.md, run as a reader would run them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "testing.md"
EXAMPLES = dict(re.findall(r"```python\n# (test_\w+\.py)\n(.*?)```", GUIDE.read_text(), re.DOTALL))


def run(directory, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path):
    """A project of somebody else: its own directory, its own settings."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\naddopts = --strict-markers\n")
    return tmp_path


def test_the_guide_shows_every_client():
    clients = {"test_confluent.py", "test_aiokafka.py", "test_faststream.py"}
    assert set(EXAMPLES) == {*clients, "test_login.py", "test_shared.py"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name, project):
    (project / name).write_text(EXAMPLES[name])
    code, said = run(project)
    assert code == 0, said


def test_workers_of_xdist_do_not_meet(project):
    (project / "test_many.py").write_text(
        "import pytest\n"
        "from pathlib import Path\n"
        "@pytest.mark.headrace(settings={'num.partitions': 2})\n"
        "@pytest.mark.parametrize('number', range(6))\n"
        "def test_one(headrace_broker, headrace_topic, number):\n"
        "    name = headrace_topic()\n"
        "    assert name.startswith('test_one-')\n"
        f"    Path({str(project)!r}, f'seen-{{headrace_broker.data.name}}-{{name}}').touch()\n"
        "    assert headrace_broker.node.config.integer('num.partitions') == 2\n"
    )
    code, said = run(project, "-n", "2")
    assert code == 0, said
    assert len(list(project.glob("seen-*"))) == 6


def test_the_plugin_costs_next_to_nothing_when_it_is_not_used(project):
    (project / "test_none.py").write_text(
        "import sys\n"
        "def test_nothing_was_loaded():\n"
        "    loaded = [name for name in sys.modules if name.startswith('headrace.')]\n"
        "    assert sorted(loaded) == ['headrace.testing', 'headrace.testing.plugin']\n"
    )
    code, said = run(project)
    assert code == 0, said


def test_a_wrong_marker_gets_a_sentence(project):
    (project / "test_wrong.py").write_text(
        "import pytest\n@pytest.mark.headrace({'num.partitions': 2})\ndef test_one(headrace_broker): ...\n"
    )
    code, said = run(project)
    assert code != 0
    assert "The headrace marker takes settings={...}, brokers=N and login={...}, nothing else." in said

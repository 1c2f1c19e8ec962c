"""The README does what it says: its commands are run, its examples pass, its links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str = "") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def environment(bootstrap: str) -> dict[str, str]:
    programs = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "HEADRACE_BOOTSTRAP": bootstrap}


def test_the_five_minutes_print_what_the_readme_shows(headrace_broker):
    session = next(block for block in blocks() if "topics create visits" in block)
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, flags=re.MULTILINE)
    assert len(steps) == 6
    for command, expected in steps[1:]:  # the first puts the programs on the path, as `environment` does
        done = subprocess.run(
            command,
            shell=True,
            env=environment(headrace_broker.bootstrap),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
        )
        # Partitions are read in any order; inside one, `ada` comes home before she checks out.
        assert sorted(done.stdout.splitlines()) == sorted(expected.strip("\n").splitlines()), command


def test_kafkas_tool_and_a_client_work_as_printed(headrace_broker):
    headrace_broker.create_topic("visits", partitions=3)
    tool = next(line[2:] for block in blocks() for line in block.splitlines() if "kafka-topics.sh" in line)
    program = next(block for block in blocks("python") if "murmur2_random" in block)
    bootstrap = headrace_broker.bootstrap
    shown = subprocess.run(
        tool.replace("127.0.0.1:9092", bootstrap),
        shell=True,
        cwd=ROOT,
        env=environment(bootstrap),
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert "PartitionCount: 3" in shown.stdout, shown.stderr
    subprocess.run(
        [sys.executable, "-c", program.replace("127.0.0.1:9092", bootstrap)], check=True, timeout=120
    )
    read = subprocess.run(
        "headrace consume visits --from-beginning --until-end --fields key,value",
        shell=True,
        env=environment(bootstrap),
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert read.stdout == "ada\t/thanks\n"


def test_the_pytest_example_passes(tmp_path):
    example = next(block for block in blocks("python") if "def test_" in block)
    (tmp_path / "test_example.py").write_text(example)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_example.py"]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, timeout=240)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_links_lead_to_files_of_the_repository():
    links = re.findall(r"\]\(([^)#]+)", README)
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []

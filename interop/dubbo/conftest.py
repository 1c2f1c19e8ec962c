"""Java Dubbo for these tests: compiled once with Maven, run on Java 17 with the packages it must look into opened."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "dubbo"
OPENED = ["java.lang", "java.util", "java.math", "java.text"]


class JavaPrograms:
    """The programs of package headrace.interop."""

    def command(self, program: str, *args: str) -> list[str]:
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        classpath = f"{BUILD}/classes:{BUILD}/lib/*"
        return ["java", "-Xmx512m", *opens, "-cp", classpath, f"headrace.interop.{program}", *args]

    def run(self, program: str, *args: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(program, *args), capture_output=True, text=True, timeout=timeout)


@pytest.fixture(scope="session")
def java() -> JavaPrograms:
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            pytest.fail(f"`{tool}` is not on the PATH: install Java 17 and Maven to run the Dubbo tests.")
    built = subprocess.run(
        ["mvn", "-q", "-B", "process-classes"], cwd=HERE, capture_output=True, text=True, timeout=600
    )
    assert built.returncode == 0, built.stdout
    return JavaPrograms()

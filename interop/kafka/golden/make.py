"""Java's own bytes: a small program over Kafka's client jar, of the version whose messages Headrace speaks."""

import lzma
from pathlib import Path

from bench.provision import JAVA, Need, need_client_jar, need_kafka, need_packages, run
from headrace.wire.messages import KAFKA

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "golden"
FILE = HERE.parents[2] / "tests" / "wire" / "golden.txt.xz"
SETTINGS = HERE.parents[2] / "tools" / "kafka_settings.tsv"


def written_by_java() -> str:
    need_packages([JAVA, Need("javac", "default-jdk-headless")])
    jar = str(need_client_jar(KAFKA))
    BUILD.mkdir(parents=True, exist_ok=True)
    run(["javac", "-d", str(BUILD), "-cp", jar, str(HERE / "Golden.java")])
    # JSON and logging come with the broker's jars; the client jar in front decides what a message is.
    return run(
        [
            "java",
            "-Dfile.encoding=UTF-8",
            "-Dstdout.encoding=UTF-8",
            "-cp",
            f"{jar}:{BUILD}:{need_kafka()}",
            "Golden",
        ]
    )


def settings_of_java() -> str:
    """Every setting of the newest broker on Maven."""
    need_packages([JAVA, Need("javac", "default-jdk-headless")])
    BUILD.mkdir(parents=True, exist_ok=True)
    run(["javac", "-d", str(BUILD), "-cp", need_kafka(), str(HERE / "ServerSettings.java")])
    said = run(["java", "-cp", f"{BUILD}:{need_kafka()}", "ServerSettings"])
    return "".join(f"{line}\n" for line in said.splitlines() if "\t" in line)


def packed(text: str) -> bytes:
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def unpacked(raw: bytes) -> str:
    return lzma.decompress(raw).decode()

"""A Kafka Streams application with exactly_once_v2: two instances, one closed and started again half way.

Its outputs hold one update for each visit. They are right if every key counts 1, 2, 3 … to its number of visits, each once
and in order, as a plain reader of committed records sees them all along.
"""

import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from bench.provision import HERE as BENCH
from bench.provision import JAVA, KAFKA_VERSION, Need, need_jars, need_packages, run
from bench.systems.clusters import HeadraceSupervised, KafkaCluster
from bench.systems.kafka_protocol import KafkaProtocolSystem, RunningKafka
from interop.kafka.programs import BUILD, HERE
from interop.kafka.talking import Talking

# The version that Headrace is measured beside, and the first that speaks every protocol version Headrace knows.
VERSIONS = (KAFKA_VERSION, "4.1.0")
PARTITIONS = 4
VISITS = 4000
VISITS_PER_SECOND = 250
COUNTRIES = ("ch", "fr", "it", "se", "pt")
VISITORS = {f"visitor-{number}": COUNTRIES[number % len(COUNTRIES)] for number in range(40)}
PAGES = [f"page-{number}" for number in range(17)]
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
# Polls that hardly wait, and many readers: fetches end by time and by new records at the same moments.
SHORT_POLLS = ("fetch.max.wait.ms=15",)
WATCHERS = 12
PATIENCE = 240.0

Expected = dict[str, Counter[str]]


def program(version: str) -> list[str]:
    """The command line of the application, compiled against a version of Kafka Streams."""
    need_packages([JAVA, Need("javac", "default-jdk-headless")])
    source = HERE / "streams"
    libraries = need_jars(source / "pom.xml", BUILD / "streams" / version, f"-Dkafka.version={version}")
    classes = BUILD / f"streams-{version}-classes"
    run(["javac", "-d", str(classes), "-cp", f"{libraries}/*", str(source / "Visits.java")])
    log4j = BENCH / "kafka" / "log4j2.properties"
    options = ["-Xmx256M", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={log4j}"]
    return ["java", *options, "-cp", f"{libraries}/*:{classes}", "Visits"]


def visits() -> Iterator[tuple[str, str]]:
    """Visitor and page of every visit."""
    visitors = list(VISITORS)
    for number in range(VISITS):
        yield visitors[number * 7 % len(visitors)], PAGES[number * number % len(PAGES)]


def expected() -> Expected:
    """How often each output topic must have counted each key."""
    by_page, by_country = Counter[str](), Counter[str]()
    for visitor, page in visits():
        by_page[page] += 1
        by_country[VISITORS[visitor]] += 1
    return {"by-page": by_page, "by-country": by_country}


def prepare(broker: RunningKafka) -> None:
    for topic in ("visits", "countries", "by-page", "by-country"):
        broker.create(topic, PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.address, "partitioner": "murmur2_random"})
    for visitor, country in VISITORS.items():
        producer.produce("countries", country, visitor)
    assert producer.flush(60) == 0


def send_visits(bootstrap: str) -> None:
    """At a steady pace, so that the application has work from its start until after the restart."""
    config = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "partitioner": "murmur2_random"}
    producer = Producer(config)
    begun = time.monotonic()
    for number, (visitor, page) in enumerate(visits()):
        producer.produce("visits", page, visitor)
        time.sleep(max(0.0, begun + number / VISITS_PER_SECOND - time.monotonic()))
    assert producer.flush(120) == 0


@contextmanager
def busy(loops: int, seconds: int) -> Iterator[None]:
    """Other work on every core, which ends by itself."""
    spin = f"import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"
    running = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def counted(follower: Talking) -> dict[tuple[str, str], list[int]]:
    """The counts of each topic and key, in the order in which they were read."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for _, topic, key, count in follower.reports("counted"):
        found[topic, key].append(int(count))
    return found


def count_visits(
    broker: RunningKafka, version: str, directory: Path, *settings: str, watchers: int = 0
) -> None:
    """Runs the application to its end and judges it: no thread died, and every visit was counted once."""
    visits_program = program(version)
    prepare(broker)
    died: list[str] = []

    def instance(name: str) -> Talking:
        return Talking([*visits_program, "application", broker.address, str(directory / name), *settings])

    def close(talking: Talking) -> None:
        talking.finish(PATIENCE)
        died.extend("\t".join(words) for words in talking.reports("died"))
        assert not died, f"{died}\n{talking.tail()}"
        assert talking.reports("threads") == [["threads", "2"]]
        assert talking.reports("closed") == [["closed", "true"]]

    total = 2 * VISITS
    with ExitStack() as stack:
        follower = stack.enter_context(
            Talking([*visits_program, "follow", broker.address, str(watchers), "by-page", "by-country"])
        )
        one = stack.enter_context(instance("one"))
        two = stack.enter_context(instance("two"))
        sender = threading.Thread(target=send_visits, args=(broker.address,))
        sender.start()
        try:

            def progress(part: float) -> None:
                follower.wait_for(
                    f"{part:.0%} of the visits are counted",
                    lambda: (
                        len(follower.reports("counted")) >= part * total
                        or bool(one.reports("died") or two.reports("died"))
                    ),
                    PATIENCE,
                )

            progress(0.4)
            close(one)
            progress(0.6)
            one = stack.enter_context(instance("one"))
            progress(1)
        finally:
            sender.join()
        close(one)
        close(two)
        follower.finish(60)
        assert not follower.reports("died"), follower.tail()
    found = counted(follower)
    for topic, keys in expected().items():
        for key, visited in keys.items():
            assert found.pop((topic, key)) == list(range(1, visited + 1)), f"{topic}, {key}"
    assert not found, "counts of keys that nobody visited"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_streams_application_counts_exactly_once_through_a_restart(
    system: KafkaProtocolSystem, version: str, tmp_path: Path
) -> None:
    with system.start(tmp_path / "data", SETTINGS) as broker:
        count_visits(broker, version, tmp_path)


@pytest.mark.timeout(900)
def test_no_thread_of_a_streams_application_dies_on_an_overloaded_machine(
    system: KafkaProtocolSystem, tmp_path: Path
) -> None:
    with system.start(tmp_path / "data", SETTINGS) as broker, busy(loops=10, seconds=120):
        count_visits(broker, KAFKA_VERSION, tmp_path, *SHORT_POLLS, watchers=WATCHERS)


@pytest.mark.timeout(900)
def test_a_streams_application_counts_exactly_once_on_three_brokers(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    against_kafka = request.config.getoption("--against") == "kafka"
    system = KafkaCluster() if against_kafka else HeadraceSupervised()
    system.prepare()
    with system.start(tmp_path / "data") as cluster:
        count_visits(cluster, KAFKA_VERSION, tmp_path)

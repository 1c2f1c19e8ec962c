"""Projects written into a directory and run to their end, in this process or as commands of their own."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from headrace.client import Admin, Producer
from headrace.client.record import TopicPartition
from headrace.client.scan import scan
from headrace.testing.process import BrokerProcess

SPEC = """
name: {name}
storage: {storage}
libraries:
  - glob:
      include: transformations/**
"""


def pytest_collection_modifyitems(items):
    """On a busy machine Spark takes its time; a test that hangs is still ended."""
    for item in items:
        if item.path.parent.name == "pipelines" and "spark" in item.fixturenames:
            item.add_marker(pytest.mark.timeout(1200))


@pytest.fixture(scope="session")
def spark(spark):
    """Every test's Spark, with its state where a pipeline's run keeps it."""
    from headrace.streaming.session import ROCKSDB

    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    return spark


@pytest.fixture
def write_project(tmp_path):
    """Write a project: `write_project({"flows.py": "…"})`; the same call again changes its files."""

    def write(files, name="shop"):
        root = tmp_path / name
        (root / "transformations").mkdir(parents=True, exist_ok=True)
        (root / "spark-pipeline.yml").write_text(SPEC.format(name=name, storage=(root / "storage").as_uri()))
        for file, text in files.items():
            (root / "transformations" / file).write_text(textwrap.dedent(text))
        return root

    return write


@pytest.fixture
def prepared(spark, bootstrap):
    """Load and resolve a project: `prepared(root)`, or `prepared(root, version="v2", start=Start(…))`."""
    from headrace.pipelines.context import Run
    from headrace.pipelines.pipeline import prepare
    from headrace.pipelines.project import load, locate

    def make(root, server=None, **run):
        project = load(locate(root))
        for table in spark.catalog.listTables():
            spark.sql(f"DROP {'VIEW' if table.isTemporary else 'TABLE'} {table.name}")
        return prepare(project, spark, Run(server or bootstrap, {}, project.name, **run))

    return make


@pytest.fixture
def run_once(prepared):
    """Run a project over what is there now; the statuses of its flows by name."""
    from headrace.pipelines.runner import Runner

    def run(root, **settings):
        pipeline = prepared(root, **settings)
        pipeline.create_topics()
        runner = Runner(pipeline.steps, pipeline.run, pipeline.checkpoints, pipeline.tables, once=True)
        deadline = time.monotonic() + 600
        try:
            while runner.turn():
                assert time.monotonic() < deadline, [status.as_json() for status in runner.statuses]
                time.sleep(0.05)
        finally:
            runner.stop()
        return {status.flow: status for status in runner.statuses}

    return run


@pytest.fixture
def write_doubling(write_project):
    """Write a project that doubles numbers and sums them up by their last digit, in small batches."""
    flow = """
        from headrace import pipelines as hp

        numbers = hp.topic("numbers", "n BIGINT", options={"maxOffsetsPerTrigger": "150"})

        @hp.topic("doubled", key="n")
        def doubled():
            return numbers.stream().selectExpr("n", "2 * n AS twice")

        @hp.table("sums", key="last")
        def sums():
            return numbers.stream().selectExpr("n % 10 AS last", "n").groupBy("last").sum("n").toDF("last", "total")
    """
    return lambda name: write_project({"flow.py": flow}, name)


@pytest.fixture
def own_broker(tmp_path):
    """A broker in a process of its own, which may be killed and started again."""
    broker = BrokerProcess(tmp_path / "broker").start()
    yield broker
    broker.kill()


@pytest.fixture
def own_cluster(own_broker):
    return Cluster(own_broker.bootstrap)


@pytest.fixture
def commands(own_broker):
    running = Commands(own_broker.bootstrap)
    yield running
    for process in running.started:
        running.kill(process)


class Commands:
    """`headrace pipeline …`, each in a process of its own."""

    def __init__(self, bootstrap):
        self.environment = {
            **os.environ,
            "HEADRACE_BOOTSTRAP": bootstrap,
            "PYSPARK_PYTHON": sys.executable,
        }
        self.started = []

    def start(self, root, *arguments, **environment):
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", "pipeline", *arguments],
            cwd=root,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def ask(self, root, *arguments):
        """What it prints until it ends, which it does well."""
        process = self.start(root, *arguments)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        return out

    def kill(self, process):
        """The command and the JVM it has started, at once and without a word."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait(30)
        process.stdout.close()
        process.stderr.close()

    def wait(self, condition, process, seconds=300, pause=0.2):
        """Until it holds, while the process works on it."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "it takes too long"
            time.sleep(pause)


@pytest.fixture
def cluster(bootstrap):
    return Cluster(bootstrap)


class Cluster:
    """The topics of a broker, as a test sees them."""

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap

    def create(self, *names, partitions=1, **config):
        with Admin(self.bootstrap) as admin:
            for name in names:
                admin.create_topic(name, partitions=partitions, config=config)

    def send(self, topic, *values, key=None):
        """Dictionaries as JSON, bytes as they are, each in the order given."""
        with Producer(self.bootstrap) as producer:
            for value in values:
                data = json.dumps(value).encode() if isinstance(value, dict) else value
                producer.send(topic, data, key=key(value) if callable(key) else key)

    def records(self, topic):
        """All committed records, by partition and offset."""
        with Admin(self.bootstrap) as admin:
            count = len(admin.topic(topic).partitions)
        places = {TopicPartition(topic, number): None for number in range(count)}
        found = list(scan({"bootstrap.servers": self.bootstrap}, places))
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def rows(self, topic):
        """The values of a JSON topic."""
        return [json.loads(record.raw_value) for record in self.records(topic)]

    def topics(self):
        with Admin(self.bootstrap) as admin:
            return set(admin.topics())

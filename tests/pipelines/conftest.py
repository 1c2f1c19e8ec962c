"""Projects written into a directory and run to their end."""

import json
import textwrap
import time

import pytest

from headrace.client import Admin, Producer
from headrace.client.record import TopicPartition
from headrace.client.scan import scan

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
    from headrace.pipelines.session import ROCKSDB

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

"""The schema registry on Headrace and on Apache Kafka, asked by franz-go's client, and read back by another instance."""

import pytest

from bench.provision import run
from headrace.client.registry_rest import RegistryRest
from headrace.link.settings import KafkaSettings
from headrace.registry import records
from headrace.registry.content import Content
from headrace.registry.topic import Fenced, TopicWriter, ensure
from headrace.testing.registry import RegistryThread
from interop.kafka.programs import BUILD, HERE, finish, need_go


def test_franz_go(bootstrap: str) -> None:
    need_go()
    BUILD.mkdir(exist_ok=True)
    run(["go", "build", "-o", str(BUILD / "schemas"), "./schemas"], cwd=HERE / "go")
    with RegistryThread(bootstrap) as registry:
        assert finish([str(BUILD / "schemas"), registry.url]).strip() == "ok"
    with RegistryThread(bootstrap) as registry:
        assert RegistryRest(registry.url).ask("GET", "subjects") == ["go-items", "go-orders"]


def test_a_writer_is_fenced_by_the_next(bootstrap: str) -> None:
    settings = KafkaSettings.of({"bootstrap.servers": bootstrap}, "the test")
    ensure(settings, "fenced-schemas", 1)
    old, new = (TopicWriter(settings, "fenced-schemas", "fenced") for _ in range(2))
    value = records.schema_value("a", 1, 1, Content('"int"'))
    first = old.begin()
    assert old.append([(records.schema_key("a", 1), value)]) == first + 1
    assert new.begin() == first + 2
    with pytest.raises(Fenced):
        old.append([(records.schema_key("b", 1), value)])
    assert new.append([(records.schema_key("c", 1), value)]) == first + 3
    old.close()
    new.close()

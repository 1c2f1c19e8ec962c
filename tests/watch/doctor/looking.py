"""One examination, as the command makes it, of checks that a test names."""

from headrace.link.settings import KafkaSettings
from headrace.watch.doctor.catalogue import CHECKS
from headrace.watch.doctor.contacts import contact
from headrace.watch.doctor.examination import Outcome, examine
from headrace.watch.doctor.machine_facts import Machine
from headrace.watch.doctor.scene import Bounds, Scene
from headrace.watch.doctor.watching import Watch


def scene_of(bootstrap=None, *, window=0.5, machine=None, bounds=None, client=None, **more):
    """`client` are settings of a client, by librdkafka's names."""
    scene = Scene(machine or Machine(), bounds=bounds or Bounds(), client=client or {}, **more)
    if bootstrap is not None:
        settings = {**scene.client, "bootstrap.servers": bootstrap}
        scene.contacts = contact(KafkaSettings.of(settings, "a test"))
        scene.watch = Watch(settings, window) if scene.contacts.reached else None
    return scene


def findings(name, bootstrap=None, **options):
    """(severity, sentence, subjects) of what one check finds; it must have been possible."""
    return look(name, scene_of(bootstrap, **options))


def look(name, scene):
    (check,) = [each for each in CHECKS if each.name == name]
    (result,) = examine(scene, [check], 90)
    assert result.outcome in (Outcome.FINE, Outcome.PROBLEMS), (result.outcome, result.reason)
    assert all(each.remedy.endswith(".") for each in result.findings)
    assert all(each.severity.rank <= check.severity.rank for each in result.findings), "worse than promised"
    return [(each.severity.value, each.sentence, each.subjects) for each in result.findings]

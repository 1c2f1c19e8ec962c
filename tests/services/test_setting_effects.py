"""Every setting acts, informs, or is named in a warning: the table of effects against the code that reads settings."""

from __future__ import annotations

import ast
import inspect
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace.services
from headrace.services import (
    ApplicationConfig,
    ArgumentConfig,
    Bootstrap,
    ConfigError,
    MethodConfig,
    ModuleConfig,
    ProtocolConfig,
    ProviderConfig,
    ReferenceConfig,
    RegistryConfig,
    ServiceConfig,
    interface,
)
from headrace.services.config import settings
from headrace.services.config.base import Config
from headrace.services.config.effects import EFFECTS, Inert, Read, Shown
from headrace.services.config.settings import ConsumerConfig, MetricsConfig, MonitorConfig

ROOT = Path(headrace.services.__file__).parent
GETTERS = {
    "get",
    "get_int",
    "get_bool",
    "get_list",
    "get_decoded",
    "method",
    "method_int",
    "method_bool",
    "pop",
}


def config_classes() -> list[type[Config]]:
    named = [value for value in vars(settings).values() if inspect.isclass(value)]
    return [cls for cls in named if issubclass(cls, Config) and cls is not Config] + [
        ServiceConfig,
        ReferenceConfig,
    ]


def declared() -> Iterator[tuple[str, str, str]]:
    """Each setting once: the class that declares it, its attribute and its key in URLs."""
    for cls in config_classes():
        for name, setting, _ in cls().settings():
            if name in cls.__annotations__:
                yield cls.__name__, name, setting.key or name.rstrip("_").replace("_", ".")


def looked_up(tree: ast.AST) -> set[str]:
    """The words a module looks up: keys given to a getter or a subscript, and attributes."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in GETTERS:
            found |= {text for argument in node.args[:2] for text in texts(argument)}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.add(node.attr)
        elif isinstance(node, ast.Subscript):
            found |= texts(node.slice)
    return found


def listed(tree: ast.Module) -> set[str]:
    """The words in a module's constants (a filter's KEY among them) and loops, which it looks up one by one."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.comprehension):
            found |= texts(node.iter)
    for node in tree.body:
        for statement in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                found |= texts(statement.value)
    return found


def texts(node: ast.AST) -> set[str]:
    return {
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    """The modules that may act on a setting, by their names below headrace.services."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text())
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).as_posix() not in ("config/settings.py", "config/effects.py")
    }


def test_every_setting_has_an_effect_and_every_effect_a_setting() -> None:
    named = defaultdict(set)
    for cls, name, _ in declared():
        named[cls].add(name)
    assert {cls: set(effects) for cls, effects in EFFECTS.items()} == named


def test_a_setting_that_acts_is_read_where_the_table_says(modules: dict[str, ast.Module]) -> None:
    words = {name: looked_up(tree) | listed(tree) for name, tree in modules.items()}
    unread = [
        f"{cls}.{name}: {effect.by} does not read it"
        for cls, name, key in declared()
        if isinstance(effect := EFFECTS[cls][name], Read) and not {key, name} & words[effect.by]
    ]
    assert unread == []


def test_a_setting_said_to_be_without_effect_is_read_nowhere(modules: dict[str, ast.Module]) -> None:
    """A module may read the same word for another class's setting, which the table then says."""
    rightly: dict[str, set[str]] = defaultdict(set)
    for cls, name, key in declared():
        effect = EFFECTS[cls][name]
        if isinstance(effect, Read):
            rightly[key].add(effect.by)
            rightly[name].add(effect.by)
    wrongly = []
    for cls, name, key in declared():
        if isinstance(EFFECTS[cls][name], Inert) and key not in rightly:
            wrongly += [
                f"{cls}.{name} is read by {m}" for m, tree in modules.items() if key in looked_up(tree)
            ]
    assert wrongly == []


@interface("com.acme.Clock")
class Clock:
    def now(self) -> int:
        return 5


def values(effect: type) -> Iterator[tuple[str, str, str]]:
    return (each for each in declared() if isinstance(EFFECTS[each[0]].get(each[1]), effect))


SAMPLES = {"environment": "test", "serialization": "hessian2"}


@pytest.mark.parametrize(("cls", "name", "key"), list(values(Shown)))
def test_a_setting_that_informs_travels_in_the_url(
    application: Callable[..., Bootstrap], cls: str, name: str, key: str
) -> None:
    given = {name: SAMPLES.get(name, "sample")}
    app_config, module, protocol = {"name": "shop"}, {"name": "part"}, {"name": "dubbo", "port": -1}
    places = {"ApplicationConfig": app_config, "ModuleConfig": module, "ProtocolConfig": protocol}
    places.get(cls, {}).update(given)
    app = application(
        ApplicationConfig(**app_config),  # type: ignore[arg-type]
        module=ModuleConfig(**module),  # type: ignore[arg-type]
        protocol=ProtocolConfig(host="127.0.0.1", **protocol),  # type: ignore[arg-type]
    )
    config = app.service(Clock(), scope="none", **({} if cls in places else given))
    config.export()
    assert config.urls[0].get(key) == given[name]


def set_inert(cls: str, name: str, app: Bootstrap) -> None:
    value: Any = True if name == "default" else "5"
    part = {name: value}
    runtime = app.runtime
    if cls == "MonitorConfig":
        runtime.monitor = MonitorConfig(**part)
    elif cls == "MetricsConfig":
        runtime.metrics = MetricsConfig(**part)
    elif cls == "RegistryConfig":
        runtime.registries = [RegistryConfig(address="N/A", **part)]
    elif cls == "ApplicationConfig":
        runtime.application = ApplicationConfig(name="shop", **part)
    elif cls == "ModuleConfig":
        runtime.module = ModuleConfig(name="part", **part)
    elif cls == "ProviderConfig":
        runtime.provider = ProviderConfig(**part)
    elif cls == "ConsumerConfig":
        runtime.consumer = ConsumerConfig(**part)
    else:
        assert cls == "ArgumentConfig"


@pytest.mark.parametrize(
    ("cls", "name"), [(cls, name) for cls, name, _ in values(Inert) if cls != "ArgumentConfig"]
)
def test_a_setting_without_effect_is_named_in_one_warning(
    application: Callable[..., Bootstrap], caplog: pytest.LogCaptureFixture, cls: str, name: str
) -> None:
    app = application("shop")
    set_inert(cls, name, app)
    with caplog.at_level(logging.WARNING, "headrace.services"):
        config = app.service(Clock(), scope="none")
        config.prepare()
        config.prepare()
        ReferenceConfig(interface=Clock, runtime=app.runtime).prepare()
    said = [record.getMessage() for record in caplog.records if "has no effect" in record.getMessage()]
    assert len(said) == 1
    assert f"{name}=" in said[0]
    effect = EFFECTS[cls][name]
    assert isinstance(effect, Inert)
    assert effect.reason in said[0]


def test_settings_that_act_are_not_warned_of(
    application: Callable[..., Bootstrap], caplog: pytest.LogCaptureFixture
) -> None:
    app = application("shop")
    with caplog.at_level(logging.WARNING, "headrace.services"):
        app.service(Clock(), scope="none", timeout=5, layer="web", tag="gray", owner="ann").prepare()
    assert "has no effect" not in caplog.text


def test_an_argument_that_is_called_back_is_refused(application: Callable[..., Bootstrap]) -> None:
    argument = ArgumentConfig(index=0, callback=True)

    class Notifier:
        def subscribe(self, listener: object) -> None: ...

    config = application().service(Notifier(), methods=[MethodConfig(name="subscribe", arguments=[argument])])
    with pytest.raises(
        ConfigError, match=r"callback=true is not supported: .* a service of the consumer's own"
    ):
        config.prepare()
    argument.callback = False
    config.prepare()

"""What `headrace up` does, and a reader of its options that needs no typer.

Importing typer takes a sixth of a broker's start, so a plain command line is read here. Whatever is not plain (a question
for help, a mistake) is left to `up`, which declares the options and explains them; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from headrace.cli.failure import Exit, Failure, Misuse
from headrace.cli.parsing import properties

if TYPE_CHECKING:
    from headrace.server.companions import Companion
    from headrace.server.stop_signals import StopSignals

DEFAULT_LISTEN = "127.0.0.1:9092"
DEFAULT_DATA = "data"
DEFAULT_METRICS = "127.0.0.1:9464"
DEFAULT_REGISTRY = "127.0.0.1:8081"


class StartOptions(TypedDict, total=False):
    """The options of `headrace up`, by the names of its parameters."""

    listen: str | None
    advertise: str | None
    data: Path | None
    config: Path | None
    settings: list[str] | None
    brokers: int | None
    zookeeper: str | None
    broker_id: int | None
    rack: str | None
    temp: bool
    metrics: str | None
    registry: str | None


def read_plain(arguments: Iterable[str]) -> StartOptions | None:
    """The options of a plain command line; None for one that typer has to look at."""
    options: StartOptions = {}
    left = iter(with_default_values(arguments))
    for argument in left:
        name, equals, value = argument.partition("=")
        if name == "--temp" and not equals:
            options["temp"] = True
            continue
        if not equals:
            value = next(left, "-")
        if value.startswith("-") or not _take(options, name, value):
            return None
    return options


def with_default_values(arguments: Iterable[str]) -> list[str]:
    """`--metrics` and `--registry` alone stand for their default addresses."""
    given = list(arguments)
    defaults = {"--metrics": DEFAULT_METRICS, "--registry": DEFAULT_REGISTRY}
    return [
        f"{argument}={defaults[argument]}"
        if argument in defaults and (not following or following[0].startswith("-"))
        else argument
        for argument, following in ((each, given[place + 1 : place + 2]) for place, each in enumerate(given))
    ]


def _take(options: StartOptions, name: str, value: str) -> bool:
    """False when it is no option with such a value."""
    match name:
        case "--listen":
            options["listen"] = value
        case "--advertise":
            options["advertise"] = value
        case "--data":
            options["data"] = Path(value)
        case "--config":
            options["config"] = Path(value)
        case "--set":
            options["settings"] = [*(options.get("settings") or ()), value]
        case "--brokers" if value.isascii() and value.isdigit() and int(value) >= 1:
            options["brokers"] = int(value)
        case "--metrics":
            options["metrics"] = value
        case "--registry":
            options["registry"] = value
        case "--zookeeper":
            options["zookeeper"] = value
        case "--id" if value.isascii() and value.isdigit():
            options["broker_id"] = int(value)
        case "--rack":
            options["rack"] = value
        case _:
            return False
    return True


def start(options: StartOptions) -> int:
    """Run a broker, or several, until it is stopped; returns the exit code."""
    temp, brokers = options.get("temp"), options.get("brokers")
    if temp and options.get("data") is not None:
        raise Misuse("--temp and --data contradict each other; leave one out.")
    if brokers is not None and (options.get("zookeeper") is not None or options.get("broker_id") is not None):
        raise Misuse(
            "--brokers keeps its cluster on this machine and numbers it itself: no --zookeeper, no --id."
        )
    overrides = properties.from_arguments(options.get("settings") or (), "--set")
    flags = _flags(options)
    companions = _companions(options)
    from headrace.server.stop_signals import StopSignals

    with StopSignals() as signals:
        if temp:
            import tempfile

            with tempfile.TemporaryDirectory(prefix="headrace-") as directory:
                flags["log.dirs"] = directory
                return _run(options.get("config"), {**flags, **overrides}, brokers, signals, companions)
        return _run(options.get("config"), {**flags, **overrides}, brokers, signals, companions)


def _companions(options: StartOptions) -> list[Companion]:
    """What runs beside the brokers."""
    registry = options.get("registry")
    if registry is None:
        return []
    from importlib.util import find_spec

    from headrace.server.companions import Companion

    for module in ("uvicorn", "msgspec"):  # otherwise it would end, and be started again, for ever
        if find_spec(module) is None:
            raise ModuleNotFoundError(name=module)
    address = _bare_address(registry, "--registry", DEFAULT_REGISTRY)
    return [Companion("the schema registry", ("registry", "--listen", address))]


def _flags(options: StartOptions) -> dict[str, str]:
    """The options that stand for a setting. Addresses have yet to get the name of their listener."""
    flags: dict[str, str] = {}
    if (listen := options.get("listen")) is not None:
        flags["listeners"] = _address(listen, "--listen")
    if (advertise := options.get("advertise")) is not None:
        flags["advertised.listeners"] = _address(advertise, "--advertise")
    if (metrics := options.get("metrics")) is not None:
        flags["headrace.metrics.listener"] = _bare_address(metrics, "--metrics", DEFAULT_METRICS)
    if (data := options.get("data")) is not None:
        flags["log.dirs"] = str(data)
    if (zookeeper := options.get("zookeeper")) is not None:
        flags["zookeeper.connect"] = zookeeper
    if (broker_id := options.get("broker_id")) is not None:
        flags["node.id"] = str(broker_id)
    if (rack := options.get("rack")) is not None:
        flags["broker.rack"] = rack
    return flags


def _address(text: str, option: str, example: str = "127.0.0.1:9092") -> str:
    """[SCHEME://]HOST:PORT, with IPv6 hosts in brackets."""
    listener, scheme, address = text.rpartition("://")
    host, separator, port = address.rpartition(":")
    if not separator or not port.isdigit():
        raise Misuse(f"{option} takes HOST:PORT, such as {example}, not '{text}'.")
    bare = address if not host.count(":") or host.startswith("[") else f"[{host}]:{port}"
    return f"{listener}{scheme}{bare}"


def _bare_address(text: str, option: str, default: str) -> str:
    """HOST:PORT, or a port alone for the default host."""
    if "://" in text:
        raise Misuse(f"{option} takes HOST:PORT, such as {default}, not '{text}'.")
    return _address(f"{default.rpartition(':')[0]}:{text}" if text.isdigit() else text, option, default)


def _named(address: str, given: Mapping[str, str]) -> str:
    """An address as that of the one listener in the file: it must not open a broker that the file protects."""
    if "://" in address:
        return address
    names = [
        part.partition("://")[0].strip() for part in given.get("listeners", "").split(",") if part.strip()
    ]
    controllers = [name.strip() for name in given.get("controller.listener.names", "").split(",")]
    names = [name for name in names if name not in controllers] or ["PLAINTEXT"]
    if len(names) > 1:
        raise Misuse(
            f"The file has the listeners {', '.join(names)}, and --listen and --advertise name one; "
            "use --set listeners=… instead."
        )
    return f"{names[0]}://{address}"


def _run(
    file: Path | None,
    overrides: dict[str, str],
    brokers: int | None,
    signals: StopSignals,
    companions: Sequence[Companion],
) -> int:
    import gc

    gc.disable()  # Nothing that a start makes is garbage; once it serves, the broker collects again.
    from headrace.server.config.broker import BrokerConfig
    from headrace.server.config.definition import ConfigError

    given, places = properties.load_with_places(file) if file is not None else ({}, {})
    for name in ("listeners", "advertised.listeners"):
        if name in overrides:
            overrides[name] = _named(overrides[name], given)
    if "listeners" not in given:
        overrides = {"listeners": f"PLAINTEXT://{DEFAULT_LISTEN}", **overrides}
    if not {"log.dirs", "log.dir"} & given.keys():
        overrides = {"log.dirs": DEFAULT_DATA, **overrides}
    try:
        checked = BrokerConfig.load(given, overrides, places)
    except ConfigError as error:
        raise Failure(str(error), Exit.USAGE) from None
    if companions and (checked.listeners[0].encrypted or checked.listeners[0].authenticated):
        raise Misuse(
            "--registry reaches the brokers through their first listener, without a login: that of this file needs one. Run the "
            "registry beside them, with its own settings: headrace registry --config FILE."
        )
    if brokers is not None:
        from headrace.server.supervisor import BrokerCommand, supervise

        gc.enable()
        return supervise(BrokerCommand(file, overrides), checked, brokers, signals, companions)
    from headrace.server.run import run

    return run(checked, signals, None, None, companions)

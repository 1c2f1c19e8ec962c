"""The configuration of one broker: its file, the settings changed while it runs, and which value applies.

A BrokerConfig never changes; `with_dynamic` makes the next one when the cluster's metadata has new values. The order of precedence
is Kafka's: this broker's dynamic value, the cluster-wide dynamic default, the static value, the default.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from headrace.nearest import nearest
from headrace.server.config.authorization import check_authorization, remarks
from headrace.server.config.broker_table import BROKER_SETTINGS, DYNAMIC_ONLY
from headrace.server.config.definition import ConfigError, Setting, Value
from headrace.server.config.group_bounds import check_group_times
from headrace.server.config.inert import REFUSED, refuse, why_inert, without_effect
from headrace.server.config.listeners import (
    Listener,
    check_distinct_ports,
    parse_address,
    parse_listeners,
    parse_protocol_map,
)
from headrace.server.config.references import Resolved, with_secrets
from headrace.server.config.retired import remark, unknown
from headrace.server.config.topic import (
    TOPIC_SYNONYMS,
    TopicConfig,
    check_topic_config,
    parse_topic_overrides,
)
from headrace.server.config.topic_table import TOPIC_SETTINGS

_LISTENER_PREFIX = "listener.name."

SYNONYM_GROUPS: tuple[tuple[str, ...], ...] = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
"""Broker settings that mean the same in other units, in order of precedence."""


def base_setting(name: str) -> Setting | None:
    """The definition of `name`, which may have a `listener.name.<listener>.` prefix."""
    if name.startswith(_LISTENER_PREFIX):
        # listener.name.<listener>.[<mechanism>.]<setting>
        parts = name[len(_LISTENER_PREFIX) :].split(".")
        for start in (1, 2):
            found = BROKER_SETTINGS.get(".".join(parts[start:]))
            if found is not None:
                return found
        return None
    return BROKER_SETTINGS.get(name)


def inert_settings(given: Mapping[str, str], running: bool = False) -> Iterator[tuple[str, str]]:
    """The given broker settings that do not act although their value is not the default, and why."""
    for name, text in given.items():
        setting = base_setting(name)
        if setting is not None and (name != setting.name or setting.parse(text) != setting.default):
            reason = why_inert(name, setting.name, running)
            if reason is not None:
                yield name, reason


def _check_value(setting: Setting | None, name: str, text: str, place: str, written: str) -> None:
    """ConfigError, with the place in the file, for a value that is invalid or refused; it shows what was `written`, which may stand
    for a secret."""
    try:
        if setting is not None:
            setting.parse(text)
        refuse(REFUSED, name, text, setting.name if setting is not None else name)
    except ConfigError as error:
        sentence = str(error).replace(text.strip(), written) if text != written else str(error)
        raise ConfigError(f"{place}: {sentence}" if place else sentence) from None


@dataclass(frozen=True)
class BrokerConfig:
    """Typed access by Kafka's names. Make one with `load`."""

    static: Mapping[str, str] = field(default_factory=dict, repr=False)
    dynamic_default: Mapping[str, str] = field(default_factory=dict, repr=False)
    dynamic_broker: Mapping[str, str] = field(default_factory=dict, repr=False)
    references: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What was written where a static value is what a reference stands for: `${env:NAME}`."""
    notices: tuple[str, ...] = ()
    """What became of settings of other Kafka generations."""
    warnings: tuple[str, ...] = ()
    """Unknown settings, most likely mistakes, and one line with the known settings that are set but do not act."""

    @classmethod
    def load(
        cls,
        properties: Mapping[str, str],
        overrides: Mapping[str, str] | None = None,
        places: Mapping[str, str] | None = None,
    ) -> BrokerConfig:
        """Check settings from a file and from the command line (`overrides`, which win).

        `places` gives the place of each setting in the file ("server.properties:12"), for error messages.

        Invalid values raise one ConfigError with a line for each, and one for each name that is unknown. An unknown name is an
        error among the overrides and only a warning in a file, since files carry settings of other servers.
        """
        typed = dict(overrides or {})
        notices: list[str] = []
        warnings: list[str] = []
        mistakes: list[str] = []
        static: dict[str, str] = {}
        references: dict[str, str] = {}
        resolved = Resolved({**properties, **typed})
        for name, written in resolved.settings.items():
            place = "" if name in typed else (places or {}).get(name, "")
            setting = base_setting(name)
            try:
                text = resolved.value(name, written, place)
                if setting is None or name not in DYNAMIC_ONLY:
                    _check_value(setting, name, text, place, written)
            except ConfigError as error:
                mistakes.append(str(error))
                continue
            if text != written:
                references[name] = written
            if setting is not None:
                if name in DYNAMIC_ONLY:
                    notices.append(f"{name} is ignored in a file: change it on the running cluster.")
                    continue
                static[name] = text.strip()
                continue
            said = remark(name)
            if said is not None:
                notices.append(said)
                continue
            said = unknown(name, BROKER_SETTINGS)
            if name in typed:
                mistakes.append(said)
            else:
                warnings.append(f"{place}: {said}" if place else said)
        if mistakes:
            raise ConfigError("\n".join([*mistakes, *warnings]))
        if idle := list(inert_settings(static)):
            warnings.append(without_effect(idle))
        notices += remarks(static)
        config = cls(static=static, references=references, notices=tuple(notices))
        config._check()
        listeners = (*config._of_no_listener(places or {}), *config._without_certificates())
        return replace(config, warnings=(*warnings, *listeners))

    def with_static(self, name: str, text: str) -> BrokerConfig:
        """The same with another value from the start: what a port 0 became."""
        return replace(self, static={**self.static, name: text})

    def with_dynamic(
        self, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str]
    ) -> BrokerConfig:
        return replace(
            self,
            dynamic_default=with_secrets(dynamic_default, base_setting),
            dynamic_broker=with_secrets(dynamic_broker, base_setting),
        )

    # -- typed values

    @cached_property
    def _values(self) -> dict[str, Value]:
        """Every setting's value, in its own unit."""
        values: dict[str, Value] = {name: setting.default for name, setting in BROKER_SETTINGS.items()}
        for layer in (self.static, self.dynamic_default, self.dynamic_broker):
            for name, text in layer.items():
                setting = BROKER_SETTINGS.get(name)
                if setting is not None:
                    values[name] = setting.parse(text)
        return values

    def value(self, name: str) -> Value:
        return self._values[name]

    def integer(self, name: str) -> int:
        value = self._values[name]
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}, not a number")
        return value

    def number(self, name: str) -> float:
        value = self._values[name]
        if not isinstance(value, float):
            raise TypeError(f"{name} is {value!r}, not a fraction")
        return value

    def boolean(self, name: str) -> bool:
        value = self._values[name]
        if not isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}, not true or false")
        return value

    def string(self, name: str) -> str | None:
        value = self._values[name]
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} is {value!r}, not text")
        return value

    def list(self, name: str) -> tuple[str, ...]:
        value = self._values[name]
        if not isinstance(value, tuple):
            raise TypeError(f"{name} is {value!r}, not a list")
        return value

    def listener_integer(self, listener: str, name: str, default: int) -> int:
        """A number set for one listener, `listener.name.<listener>.<name>`."""
        full = f"{_LISTENER_PREFIX}{listener.lower()}.{name}"
        for layer in (self.dynamic_broker, self.dynamic_default, self.static):
            if full in layer:
                value = BROKER_SETTINGS[name].parse(layer[full])
                return value if isinstance(value, int) else default
        return default

    def set_for_listener(self, listener: str, name: str) -> bool:
        """Whether a listener has a setting of its own, `listener.name.<listener>.<name>`."""
        full = f"{_LISTENER_PREFIX}{listener.lower()}.{name}"
        return any(full in layer for layer in (self.dynamic_broker, self.dynamic_default, self.static))

    def for_listener(self, listener: str, mechanism: str = "") -> BrokerConfig:
        """The settings as one listener has them: its own, `listener.name.<listener>.<setting>`, win over the broker's, and those
        of one of its SASL mechanisms, `listener.name.<listener>.<mechanism>.<setting>`, win over both."""
        own: dict[str, str] = {}
        for prefix in (f"{listener}.", f"{listener}.{mechanism}.") if mechanism else (f"{listener}.",):
            full = _LISTENER_PREFIX + prefix.lower()
            for layer in (self.static, self.dynamic_default, self.dynamic_broker):
                own |= {name[len(full) :]: text for name, text in layer.items() if name.startswith(full)}
        return replace(self, dynamic_broker={**self.dynamic_broker, **own}) if own else self

    def first_of(self, names: Iterable[str]) -> str:
        """Of settings that mean the same, the one whose value applies.

        The source counts before the name: `log.retention.ms` set while running wins over a static `log.retention.hours`, and the
        reverse.
        """
        candidates = tuple(names)
        for layer in (self.dynamic_broker, self.dynamic_default, self.static):
            for name in candidates:
                if name in layer:
                    return name
        return next((name for name in candidates if BROKER_SETTINGS[name].default is not None), candidates[0])

    # -- values that several settings determine together

    @property
    def node_id(self) -> int | None:
        """The broker's id, if the settings give one."""
        given = self.value("node.id")
        if isinstance(given, int):
            return given
        older = self.integer("broker.id")
        return older if older >= 0 else None

    @property
    def log_dirs(self) -> tuple[Path, ...]:
        text = self.string("log.dirs") or self.string("log.dir") or ""
        return tuple(Path(part.strip()) for part in text.split(",") if part.strip())

    @property
    def cordoned_log_dirs(self) -> frozenset[str]:
        """Absolute paths of the data directories that take no new replicas."""
        every = {os.path.abspath(path) for path in self.log_dirs}
        named = self.list("cordoned.log.dirs")
        return frozenset(every if "*" in named else every & {os.path.abspath(path) for path in named})

    @cached_property
    def listeners(self) -> tuple[Listener, ...]:
        """What to bind, without a KRaft controller's listeners."""
        return self._broker_listeners("listeners", self.string("listeners") or "")

    @cached_property
    def advertised_listeners(self) -> tuple[Listener, ...]:
        """The addresses for clients; empty when `advertised.listeners` is not set."""
        return self._broker_listeners("advertised.listeners", self.string("advertised.listeners") or "")

    def _broker_listeners(self, setting: str, text: str) -> tuple[Listener, ...]:
        protocols = parse_protocol_map(self.string("listener.security.protocol.map") or "")
        controllers = {
            name.strip().upper()
            for name in (self.string("controller.listener.names") or "").split(",")
            if name.strip()
        }
        for name in controllers:
            protocols.setdefault(name, "PLAINTEXT")
        return tuple(
            listener
            for listener in parse_listeners(setting, text, protocols)
            if listener.name not in controllers
        )

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """Where to serve metrics; None for nowhere."""
        text = self.string("headrace.metrics.listener")
        return parse_address("headrace.metrics.listener", text) if text else None

    @property
    def inter_broker_listener(self) -> str:
        """The one that is named, or has the name of the protocol; a lone listener, if neither is set."""
        name = self.string("inter.broker.listener.name")
        if not name and len(self.listeners) == 1 and "security.inter.broker.protocol" not in self.static:
            return self.listeners[0].name
        return (name or self.string("security.inter.broker.protocol") or "PLAINTEXT").upper()

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The values in effect for a topic with these settings of its own; ConfigError if they are invalid."""
        return TopicConfig.from_values({**self.topic_defaults, **parse_topic_overrides(overrides)})

    @cached_property
    def topic_defaults(self) -> dict[str, Value]:
        """The values for a topic without settings of its own, by topic setting."""
        defaults: dict[str, Value] = {}
        for name, setting in TOPIC_SETTINGS.items():
            synonyms = TOPIC_SYNONYMS.get(name)
            if synonyms is None:
                defaults[name] = setting.default
                continue
            chosen = self.first_of(synonym.name for synonym in synonyms)
            value = self._values[chosen]
            factor = next(synonym.factor for synonym in synonyms if synonym.name == chosen)
            if isinstance(value, int) and not isinstance(value, bool) and factor != 1:
                value = value * factor
            if name == "retention.ms" and isinstance(value, int) and value < 0:
                value = -1
            defaults[name] = value
        return defaults

    # -- checks

    def _check(self) -> None:
        """ConfigError when settings contradict each other."""
        given, older = self.value("node.id"), self.integer("broker.id")
        if isinstance(given, int) and "broker.id" in self.static and older >= 0 and given != older:
            raise ConfigError("You must set `node.id` to the same value as `broker.id`.")
        if not self.log_dirs:
            raise ConfigError("At least one log directory must be defined via log.dirs or log.dir.")
        for path in self.list("cordoned.log.dirs"):
            if path != "*" and os.path.abspath(path) not in map(os.path.abspath, self.log_dirs):
                raise ConfigError(f"cordoned.log.dirs names {path}, which is not in log.dirs.")
        self._check_listeners()
        check_authorization(self)
        self.check_dynamic()
        if self.integer("replica.fetch.wait.max.ms") > self.integer("replica.socket.timeout.ms"):
            raise ConfigError("replica.socket.timeout.ms must be at least replica.fetch.wait.max.ms.")
        if self.integer("replica.fetch.wait.max.ms") > self.integer("replica.lag.time.max.ms"):
            raise ConfigError("replica.fetch.wait.max.ms must not be greater than replica.lag.time.max.ms.")
        if self.integer("group.min.session.timeout.ms") > self.integer("group.max.session.timeout.ms"):
            raise ConfigError(
                "group.min.session.timeout.ms must not be greater than group.max.session.timeout.ms."
            )
        check_group_times(self)
        if "classic" not in self.list("group.coordinator.rebalance.protocols"):
            raise ConfigError("Disabling the 'classic' protocol is not supported.")

    def check_dynamic(self) -> None:
        """ConfigError when settings that can change while the broker runs contradict each other."""
        defaults = TopicConfig.from_values(self.topic_defaults)
        if defaults.segment_ms < 1:
            raise ConfigError("log.roll.ms must be greater than or equal to 1.")
        if defaults.segment_jitter_ms < 0:
            raise ConfigError("log.roll.jitter.ms must be greater than or equal to 0.")
        if defaults.retention_ms == 0:
            raise ConfigError("log.retention.ms must be unlimited (-1) or, greater than or equal to 1.")
        check_topic_config(defaults)

    def _of_no_listener(self, places: Mapping[str, str]) -> Iterator[str]:
        """A sentence for each setting of a listener that this broker does not have: a slip in its name may leave the one that was
        meant open. Controllers' listeners are left out, because a file of Kafka may have them."""
        theirs = (self.string("controller.listener.names") or "").split(",")
        known = [listener.name.lower() for listener in self.listeners]
        for name in self.static:
            if not name.startswith(_LISTENER_PREFIX):
                continue
            listener = name[len(_LISTENER_PREFIX) :].partition(".")[0]
            if listener in known or listener in (each.strip().lower() for each in theirs):
                continue
            place = f"{places[name]}: " if name in places else ""
            near = listener.lower() if listener.lower() in known else nearest(listener, known)
            hint = f" Did you mean {_LISTENER_PREFIX}{near}?" if near else ""
            yield f"{place}{name} has no effect: `listeners` has no {listener}, only {', '.join(known)}.{hint}"

    def _without_certificates(self) -> Iterator[str]:
        """A sentence for each SASL_SSL listener that the broker's ssl.client.auth looks as if it were for, too."""
        wanted = self.string("ssl.client.auth")
        for listener in self.listeners:
            if listener.protocol != "SASL_SSL" or wanted == "none":
                continue
            if not self.set_for_listener(listener.name, "ssl.client.auth"):
                yield (
                    f"ssl.client.auth={wanted} does not count for listener {listener.name}, where a login says who a client is: "
                    f"set listener.name.{listener.name.lower()}.ssl.client.auth to ask for certificates there, too."
                )

    def _check_listeners(self) -> None:
        if not self.listeners:
            raise ConfigError(
                "At least one listener must be given in `listeners`, such as PLAINTEXT://:9092."
            )
        check_distinct_ports("listeners", self.listeners)
        metrics = self.metrics_address
        if metrics is not None and metrics[1] and metrics[1] in {each.port for each in self.listeners}:
            raise ConfigError(
                f"headrace.metrics.listener needs a port of its own: {metrics[1]} is one of `listeners`."
            )
        bound = {listener.name for listener in self.listeners}
        for listener in self.advertised_listeners:
            if listener.host == "0.0.0.0":
                raise ConfigError(
                    "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. "
                    "Use a routable IP address or a host name."
                )
            if listener.name not in bound:
                raise ConfigError(
                    f"advertised.listeners names listener {listener.name}, which `listeners` does not have: "
                    f"{', '.join(sorted(bound))}."
                )
        named = "inter.broker.listener.name" in self.static
        if named and "security.inter.broker.protocol" in self.static:
            raise ConfigError(
                "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
            )
        if self.inter_broker_listener not in bound:
            setting = "inter.broker.listener.name" if named else "security.inter.broker.protocol"
            remedy = "" if named else "; set inter.broker.listener.name to one of them"
            raise ConfigError(
                f"{setting} is {self.inter_broker_listener}, "
                f"which `listeners` does not have: {', '.join(sorted(bound))}{remedy}."
            )

"""The broker's loggers as a config resource: their levels can be read and changed while it runs."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headrace.server.cluster.config_changes import ConfigOp, OpType
from headrace.server.config.definition import ConfigSource, ConfigType
from headrace.server.config.describe import ConfigEntry
from headrace.server.security.audit import AUDIT
from headrace.wire.errors import ErrorCode, KafkaError

ROOT = "root"
LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG,
}


def _loggers() -> dict[str, logging.Logger]:
    known = logging.Logger.manager.loggerDict
    found = {ROOT: logging.getLogger()}
    found.update((name, logging.getLogger(name)) for name in known if name.partition(".")[0] == "headrace")
    found[AUDIT.name] = AUDIT
    return found


def _level_name(logger: logging.Logger) -> str:
    level = logger.getEffectiveLevel()
    return next((name for name, number in LEVELS.items() if level >= number), "TRACE")


def describe_loggers() -> list[ConfigEntry]:
    return [
        ConfigEntry(
            name=name,
            value=_level_name(logger),
            source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
            read_only=False,
            sensitive=False,
            type=ConfigType.STRING,
            documentation=None,
            synonyms=(),
        )
        for name, logger in sorted(_loggers().items())
    ]


def alter_loggers(broker_id: int, name: str, ops: Sequence[ConfigOp], validate_only: bool) -> None:
    """Set levels, or reset them to the parent's; KafkaError and no change when any of them is invalid."""
    if name != str(broker_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {broker_id} but received {name}"
        )
    loggers = _loggers()
    for op in ops:
        if op.name not in loggers:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {op.name} does not exist!")
        if op.op is OpType.SET and op.value not in LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {op.name} to {op.value} as it is not a supported log level. "
                f"Valid log levels are {', '.join(LEVELS)}",
            )
        if op.op is OpType.DELETE and op.name == ROOT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
            )
        if op.op not in (OpType.SET, OpType.DELETE):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{op.op.name} operation is not allowed for the BROKER_LOGGER resource",
            )
    if validate_only:
        return
    for op in ops:
        loggers[op.name].setLevel(LEVELS[op.value or "INFO"] if op.op is OpType.SET else logging.NOTSET)

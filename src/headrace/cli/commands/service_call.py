"""What `headrace services invoke` makes sure of before it calls, and how it words a provider's refusal.

The registry says which services, groups, versions and methods there are; the metadata report, where a provider
published one, says what the arguments have to be. Everything else is the provider's to judge.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headrace.cli.failure import Failure, did_you_mean

if TYPE_CHECKING:
    from headrace.services.catalogue import Catalogue, ServiceEntry

MAX_REASON = 300
MAX_LISTED = 8
_NOT_FOUND = re.compile(r"Not found exported service: (\S+) in \[(.*?)\], may be version or group mismatch")
_JAVA_CLASSES = ("org.apache.dubbo.", "com.alibaba.dubbo.", "java.")
_HINTS = {
    "Not unique method": "name the types of the arguments with --types",
    "args.length != types.length": "the method takes another number of arguments",
}


def check_call(
    catalogue: Catalogue,
    interface: str,
    method: str,
    arguments: list[object],
    *,
    types: list[str] | None,
    group: str | None,
    version: str | None,
) -> list[str] | None:
    """Fail if the call cannot be answered; else the types to send, None where the name alone finds the method."""
    from headrace.services.definition import CallMistake, ServiceDefinition

    entry = _find(catalogue, interface, group or "", version or "")
    described = catalogue.description(entry)
    if described is None:
        known = entry.methods
        if known and "*" not in known and method not in known:
            has = did_you_mean(method, known) or f" It has {', '.join(known[:MAX_LISTED])}."
            raise Failure(f"{entry.key} has no method '{method}'.{has}")
        return types
    definition = ServiceDefinition(described)
    try:
        found = definition.match(method, arguments, types)
    except CallMistake as error:
        hint = " Name them with --types." if "overloaded" in str(error) else ""
        raise Failure(f"{error}{hint}") from None
    overloaded = sum(each.name == method for each in definition.methods) > 1
    return found.raw_types if overloaded else types


def _find(catalogue: Catalogue, interface: str, group: str, version: str) -> ServiceEntry:
    """The service a call is for, as its providers registered it."""
    from headrace.services.addresses import is_match
    from headrace.services.url import URL

    entries = catalogue.services(interface)
    if not entries:
        known = {entry.interface for entry in catalogue.services()}
        near = did_you_mean(interface, known) or " 'headrace services list' shows those it knows."
        raise Failure(f"The registry knows no service '{interface}'.{near}")
    offered = [entry for entry in entries if entry.urls["providers"]]
    if not offered:
        raise Failure(f"No provider of {interface} is registered now: start one, or wait until it is back.")
    wanted = URL("consumer", "0.0.0.0", 0, interface, {"group": group, "version": version})
    for entry in offered:
        if any(is_match(wanted, url) for url in entry.urls["providers"]):
            return entry
    asked = " and ".join(
        f"{name} {value}" if value else f"no {name}"
        for name, value, there in (
            ("group", group, {entry.group for entry in offered}),
            ("version", version, {entry.version for entry in offered}),
        )
        if value not in there
    )
    listed = ", ".join(entry.key for entry in offered[:MAX_LISTED])
    raise Failure(
        f"No provider of {interface} with {asked or 'this group and version'} is registered, only {listed}: "
        f"call one of them with {_options(offered[0])}."
    )


def _options(entry: ServiceEntry) -> str:
    given = [("--group", entry.group), ("--version", entry.version)]
    return (
        " ".join(f"{option} {value}" for option, value in given if value) or "neither --group nor --version"
    )


def plain_reason(reason: str) -> str:
    """A provider's reason for people: its first line, without Java's class names, channels and invocations."""
    missing = _NOT_FOUND.search(reason)
    if missing is not None:
        there = [_without_port(key) for key in missing[2].split(", ") if key]
        listed = ", ".join(there[:MAX_LISTED]) or "nothing"
        return f"the provider does not export {_without_port(missing[1])}, only {listed}: check --version and --group"
    line = reason.partition("\n")[0].partition(" , channel:")[0]
    while line.partition(": ")[0].startswith(_JAVA_CLASSES):
        line = line.partition(": ")[2]
    line = line.strip().rstrip(".,")
    hint = next((hint for start, hint in _HINTS.items() if start in line), "")
    line = f"{line}: {hint}" if hint else line
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"


def _without_port(key: str) -> str:
    """`group/com.acme.Orders:1.0:20880` as the service key it begins with."""
    return key.rpartition(":")[0] or key

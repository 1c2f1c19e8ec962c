"""Names of topics and groups for the shell's completion: asked of the broker, silent when it is away."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli.failure import Failure
from headrace.link import DEFAULT_BOOTSTRAP

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster


def topics(given: Mapping[str, Any], incomplete: str) -> list[str]:
    def names() -> list[str]:
        from headrace.client.administration.topics import users_own

        return _cluster(given).call(users_own)

    return _matching(names, incomplete)


def groups(given: Mapping[str, Any], incomplete: str) -> list[str]:
    def names() -> list[str]:
        from headrace.client.administration.groups import listings

        return [listing.group for listing in _cluster(given).call(listings)]

    return _matching(names, incomplete)


def contexts(incomplete: str) -> list[str]:
    def names() -> list[str]:
        from headrace.link.contexts import contexts_file, load
        from headrace.link.errors import SettingsError

        try:
            return list(load(contexts_file()).by_name)
        except SettingsError:
            return []

    return _matching(names, incomplete)


def _cluster(given: Mapping[str, Any]) -> Cluster:
    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing.which_cluster import from_environment, in_use

    bootstrap = given.get("bootstrap") or from_environment() or in_use() or DEFAULT_BOOTSTRAP
    config = given.get("command_config")
    return connect(bootstrap, Path(config) if config else None)


def _matching(names: Callable[[], list[str]], incomplete: str) -> list[str]:
    held, sys.stderr = sys.stderr, open(os.devnull, "w")  # noqa: SIM115 - a note would land in the user's prompt
    try:
        return [name for name in names() if name.startswith(incomplete)]
    except Failure:
        return []
    finally:
        sys.stderr = held

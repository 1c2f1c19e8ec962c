"""Which cluster a command talks to: the first that is given of

--bootstrap-server, --context, HEADRACE_CONTEXT, HEADRACE_BOOTSTRAP and the context in use (`headrace context use`).
"""

from __future__ import annotations

import os

from headrace.cli.failure import Exit, Failure
from headrace.link import contexts
from headrace.link.errors import SettingsError


def from_environment() -> str | None:
    """Servers chosen for this command outside its command line; --context ends up here, too."""
    name = os.environ.get(contexts.VARIABLE)
    if not name:
        return os.environ.get("HEADRACE_BOOTSTRAP") or None
    try:
        return contexts.ContextServers.of(contexts.load(contexts.contexts_file()).get(name))
    except SettingsError as error:
        raise Failure(str(error), Exit.USAGE) from None


def in_use() -> str | None:
    """Servers of the context in use."""
    try:
        context = contexts.load(contexts.contexts_file()).in_use()
    except SettingsError as error:
        raise Failure(str(error), Exit.USAGE) from None
    return None if context is None else contexts.ContextServers.of(context)

"""The way in: fixed hashes, and for a mutation the changed source, before anything of the broker is imported."""

from __future__ import annotations

import os
import sys

from tests.simulation.mutations import BY_NAME, MUTATION, install

if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    if MUTATION in os.environ:
        install(BY_NAME[os.environ[MUTATION]])

    from tests.simulation.campaign import main

    sys.exit(main())

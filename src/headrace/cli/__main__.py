"""`python -m headrace.cli` is the `headrace` command."""

from headrace.cli import main

main()

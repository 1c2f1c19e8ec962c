"""`python -m headrace.cli.kafka <tool> …`"""

from headrace.cli.kafka import main

main()

"""One file per `headrace` command: read its options, call what does the work, hand the result to a view."""

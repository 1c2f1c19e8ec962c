"""Where notices go: the log, a webhook, a command, a topic."""

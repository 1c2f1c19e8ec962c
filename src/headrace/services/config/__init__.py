"""Settings: where they come from, how they are checked and how they reach a URL."""

"""Redis: streams in; strings, hashes, lists and streams out."""

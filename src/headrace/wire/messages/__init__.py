"""One module per API, generated; see `headrace.wire.schema` for how to read them."""

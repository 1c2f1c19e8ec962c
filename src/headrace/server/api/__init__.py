"""One file per API: decode, ask an engine, reply. `registry.py` lists what is served and so advertised."""

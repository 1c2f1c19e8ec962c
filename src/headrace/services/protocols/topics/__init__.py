"""Calls over topics: requests and replies as records, so that neither end need be there at the same time."""

"""Mirrors of topics of other clusters: a link's brokers fetch from the source's leaders and append what they get as it is."""

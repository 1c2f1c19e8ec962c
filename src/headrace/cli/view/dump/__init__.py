"""Looking into a partition's files: segments, indexes, producer snapshots. Reads only, and needs no broker."""

"""Share groups: records of a partition handed out one by one, and where that stands (docs/share-groups.md)."""

"""The classic group protocol: members join and sync, the group's leader assigns."""

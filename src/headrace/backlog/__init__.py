"""Backlogs: what would help a group that is behind, and ways around it."""

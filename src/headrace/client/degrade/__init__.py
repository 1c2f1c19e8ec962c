"""Doing less under load, and the rest later: rules, their states, control by a topic, what was dropped, and its replay."""

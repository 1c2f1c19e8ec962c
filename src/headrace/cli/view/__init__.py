"""How results look: tables, live tables, progress, JSON, and records and log files as text."""

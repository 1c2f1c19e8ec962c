"""Alerts: rules judged again and again, notices to people and systems, state in control topics (docs/alerts.md)."""

"""Databases over SQLAlchemy."""

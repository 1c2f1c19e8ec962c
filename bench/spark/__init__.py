"""Spark under measurement: the program that holds a session, and the official connector's jars."""

"""Headrace at work: each example is one command, `make example NAME=<name>`."""

"""Requests that librdkafka has no call for, sent over a plain blocking socket with Headrace's own codec."""

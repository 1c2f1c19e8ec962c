"""Headrace beside Apache Kafka and others, measured on one machine in one run.

`python -m bench` runs the parts, keeps their figures in bench/results.json and makes tables and a chart.
"""

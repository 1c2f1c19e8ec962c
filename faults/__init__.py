"""The fault campaign: a real cluster under load, broken by a seeded schedule, and judged by everything it answered."""

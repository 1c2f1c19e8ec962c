"""The cluster that a command talks to: connecting, wording its refusals, reading and writing records."""

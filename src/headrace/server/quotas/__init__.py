"""Client quotas: how much each client may use of this broker, and how long one that used more has to wait."""

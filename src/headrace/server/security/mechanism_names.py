"""The SASL mechanisms that a listener can offer, by name."""

PLAIN, SCRAM_256, SCRAM_512 = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"
OAUTHBEARER, GSSAPI = "OAUTHBEARER", "GSSAPI"

"""The client half of the protocol, for everything in Headrace that speaks to brokers itself: settings, connections, routing."""

"""SASL exchanges, the client's side and the broker's: messages in and out, without I/O."""

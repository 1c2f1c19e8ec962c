"""The small client brokers use among themselves."""

"""Dubbo's own protocol: a 16-byte header and a Hessian 2 body over TCP."""

"""Services after Dubbo 2.7.3: export, discovery and calls, in Python."""

"""Where providers and consumers find each other."""

"""Many providers as one: directories, load balancing, failure strategies, configurators."""

"""What command lines and their files hold, as values: properties, times, partitions, plans."""

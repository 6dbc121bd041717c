"""A run as one HTML page: opened from disk, without a server and without a network."""

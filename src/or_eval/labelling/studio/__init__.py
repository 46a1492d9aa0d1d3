"""Label Studio: an environment of its own, a server on loopback, its tasks and its annotations."""

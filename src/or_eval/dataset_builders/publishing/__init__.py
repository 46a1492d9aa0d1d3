"""The data set on disk and on the Hub, with its card."""

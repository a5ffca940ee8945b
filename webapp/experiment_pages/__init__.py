"""The list, the queue and the page of an experiment."""

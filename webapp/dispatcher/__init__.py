"""Moves work from the queue of record to Redis when a slot is free."""

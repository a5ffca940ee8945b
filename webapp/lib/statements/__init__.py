"""SQL that is written once per process, for what workers and the dispatcher do all the time."""

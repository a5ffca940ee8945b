"""SQL that is written in one place: statements built once per process, and texts at keys of JSON columns."""

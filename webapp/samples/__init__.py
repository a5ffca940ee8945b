"""Sample data for the first five minutes: a recorded run, badged, never picked up, deleted by one click."""

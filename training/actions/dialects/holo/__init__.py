"""Holo: one JSON object with a note, a thought and the call of a tool."""

"""From an alarm to its cause and to its remedy."""

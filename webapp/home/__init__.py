"""The first page, which says what needs a person, and Ctrl+K, which goes to anything and does anything."""

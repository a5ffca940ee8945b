"""The same actions again and again."""

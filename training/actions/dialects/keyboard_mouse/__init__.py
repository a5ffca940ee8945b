"""The Windows example's tags with a pointer."""

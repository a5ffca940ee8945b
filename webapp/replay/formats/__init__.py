"""Forms in which entries leave and come back: one folder and one row each."""

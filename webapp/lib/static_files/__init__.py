"""Files that browsers are sent as they are: out of which packages, which part of them, and by what."""

"""Which tasks can run: what of OSWorld's task schema each runtime has, and why the rest is refused."""

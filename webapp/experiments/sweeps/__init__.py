"""Many experiments as one object: values searched over, each with several seeds."""

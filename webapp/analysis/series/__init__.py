"""Series of metrics, thinned for charts, and the panels that show them."""

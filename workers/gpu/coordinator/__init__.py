"""The coordinator: what the trainer may ask of the product, over HTTP on loopback."""

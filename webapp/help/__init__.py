"""The documentation inside the product: pages of the built site, their search, and links to them."""

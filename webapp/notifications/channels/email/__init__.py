"""E-mail by the installation's server."""

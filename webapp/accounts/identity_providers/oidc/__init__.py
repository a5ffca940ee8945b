"""Sign-in by an OpenID Connect provider of the installation's own, as an option."""

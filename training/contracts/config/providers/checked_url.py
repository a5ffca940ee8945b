"""URLs in a config: of a known scheme, and without a secret in them."""

from urllib.parse import urlsplit


def checked_url(url: str, schemes: tuple[str, ...]) -> str:
    """The URL without a final slash. Raises ValueError when it is none, or holds a secret."""
    parts = urlsplit(url)
    _ = parts.port  # raises for one that is none
    if parts.scheme not in schemes or not parts.hostname:
        raise ValueError(f"{url!r}: a URL with {' or '.join(schemes)} and a host is needed")
    if parts.username or parts.password or parts.path.startswith("/token/"):
        raise ValueError("a URL must not hold a token; put it into the secret store and name the secret")
    if parts.query or parts.fragment:
        raise ValueError(f"{url!r}: leave out what follows ? or #")
    return url.rstrip("/")

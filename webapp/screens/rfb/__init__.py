"""The remote framebuffer protocol (RFC 6143) as far as a filtering proxy needs it; no sockets, no models."""

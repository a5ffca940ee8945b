"""A worker's reports and requests to the web application: in its process, or on a joined host over HTTPS."""

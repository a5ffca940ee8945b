"""The way from env workers to the web application: a call on its own machine, HTTPS from a joined host."""

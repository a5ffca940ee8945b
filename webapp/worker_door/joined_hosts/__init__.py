"""What joined hosts need of the server and its own workers do not: joining, and calls over HTTPS."""

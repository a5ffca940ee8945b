"""The only door from env workers to the database: calls the web application's services."""

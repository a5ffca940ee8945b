"""Workers of a joined host: they take jobs over HTTPS and know no Celery, no Redis and no database."""

"""The Django project: what people see, and every write to the database."""

__version__ = "0.1.0"

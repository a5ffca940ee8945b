"""A server of MLflow."""

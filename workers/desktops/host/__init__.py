"""The desk host: one long-lived process per machine that is the parent of every desktop."""

"""A refused request takes one line of the log: what was wrong with it, and no stack of ours."""

import logging


class RefusalLines(logging.Filter):
    """For the logger `django.request`: the places in our code matter only where the fault is ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        return True

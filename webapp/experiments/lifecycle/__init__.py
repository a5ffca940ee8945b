"""From queued to finished: the queue, attempts, what trainers report, what people ask."""

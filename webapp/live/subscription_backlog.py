"""One browser's place in one stream: what it has, what waits for it, whether the database must be asked.

offered in any order -> waiting -> take() gives what follows the cursor, in order, each once
a gap, or too much waiting -> is_behind: the rows after the cursor are read instead
"""

from dataclasses import dataclass, field

from webapp.live.stream_access import LiveEvent, Page

MAX_WAITING = 64
"""A slow browser's events are dropped from memory beyond this and read again from the database."""


@dataclass
class Feed:
    stream: str
    cursor: int
    is_behind: bool = True
    """Starts true: what was published before subscribing has to be read."""
    waiting: list[LiveEvent] = field(default_factory=list)

    def offer(self, event: LiveEvent) -> None:
        """Take in an event that the channel layer delivered."""
        if event.seq <= self.cursor:
            return
        if len(self.waiting) >= MAX_WAITING:
            self.waiting.clear()
            self.is_behind = True
        else:
            self.waiting.append(event)

    def take(self) -> list[LiveEvent]:
        """Remove and return the waiting events that directly follow the cursor, and advance it.

        Writers tell the channel layer after their commits, so two events can arrive swapped: a gap means
        that the missing one is already in the database.
        """
        ready: list[LiveEvent] = []
        for event in sorted(self.waiting, key=lambda event: event.seq):
            if event.seq > self.cursor + 1:
                self.is_behind = True
                break
            if event.seq == self.cursor + 1:
                ready.append(event)
                self.cursor = event.seq
        self.waiting = [event for event in self.waiting if event.seq > self.cursor]
        return ready

    def catch_up(self, page: Page) -> tuple[bool, list[LiveEvent]]:
        """Advance over what the database holds; (events were pruned, events to send)."""
        first = page.events[0].seq if page.events else None
        is_pruned = first != self.cursor + 1 if first is not None else page.last_seq != self.cursor
        if is_pruned:
            self.cursor = first - 1 if first is not None else page.last_seq
        if page.events:
            self.cursor = page.events[-1].seq
        self.waiting = [event for event in self.waiting if event.seq > self.cursor]
        self.is_behind = self.cursor < page.last_seq
        return is_pruned, page.events

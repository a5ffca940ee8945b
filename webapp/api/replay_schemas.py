"""What the API says of replay entries, and takes."""

from datetime import datetime

from ninja import Field, Schema

from webapp.api.paging import Page


class EntryRow(Schema):
    """A replay entry."""

    id: int
    trajectory_id: int
    part: int
    """Turn, from 0, at which it was split off from another entry of its trajectory; 0: it was not."""
    family: str
    verdict: str
    tags: list[str]
    note: str
    labelled_by: str | None = Field(None, alias="labelled_by.username")
    labelled_at: datetime | None
    num_uses: int
    has_bad_turns: bool
    """Turns of it were unparsable or refused: it is accepted trimmed only."""
    created_at: datetime


class LabelIn(Schema):
    """What to change; null leaves it as it is."""

    verdict: str | None = None
    tags: list[str] | None = None
    note: str | None = None
    expected_verdict: str | None = None
    """The verdict that the caller saw; 409 when it has changed since."""
    trim: bool = False
    """Accept an entry with unparsable or refused turns without those; 409 when it has some and this is not
    set."""


class EntryPage(Page[EntryRow]):
    """Newest first; `next` is the `after` of the next page."""

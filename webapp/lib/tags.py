"""Tags that people put on things: lower case, few and short, kept as a JSON list."""

from django.db.models import Q

from webapp.lib.request_values import BadValue, check_text

MAX_TAGS = 12
MAX_TAG = 40


def checked_tags(tags: list[str]) -> list[str]:
    """The tags as they are stored. Raises BadValue."""
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise BadValue("tags", "not a list of texts")
    cleaned = list(dict.fromkeys(tag.strip().lower() for tag in tags if tag.strip()))
    if len(cleaned) > MAX_TAGS:
        raise BadValue("tags", f"at most {MAX_TAGS}, these are {len(cleaned)}")
    for tag in cleaned:
        if len(tag) > MAX_TAG:
            raise BadValue("tags", f"{tag[:20]}… is longer than {MAX_TAG} characters")
        check_text(tag, "tags")
    return cleaned


def with_tag(tag: str) -> Q:
    """Rows whose column `tags` has this one."""
    # Tags are lower-case JSON strings in a list; this reads the same on both databases.
    return Q(tags__icontains=f'"{tag.lower()}"')

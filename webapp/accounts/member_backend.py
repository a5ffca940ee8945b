"""Who a session belongs to, together with their teams."""

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User

from webapp.accounts.models import Membership


class MemberBackend(ModelBackend):
    """Django's own, but for one thing: the person comes with their memberships, in one query of each page."""

    def get_user(self, user_id: int) -> User | None:
        held = list(Membership.objects.filter(user=user_id).select_related("user", "team").order_by("id"))
        if not held:
            return super().get_user(user_id)
        user = held[0].user
        user.held_memberships = held  # type: ignore[attr-defined]
        return user if self.user_can_authenticate(user) else None

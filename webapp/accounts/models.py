"""Teams and what a member may do in them.

Users are Django's own. Everything people see belongs to a team; a role is held per team.
"""

from django.conf import settings
from django.db import models


class Role(models.TextChoices):
    """What a member may do; each role includes the ones before it."""

    VIEWER = "viewer", "Viewer"
    ANNOTATOR = "annotator", "Annotator"
    OPERATOR = "operator", "Operator"
    ADMIN = "admin", "Admin"

    def includes(self, other: "Role") -> bool:
        """True when this role may do what `other` may."""
        order = list(Role)
        return order.index(self) >= order.index(other)


class Team(models.Model):
    """People who share experiments, trajectories and the replay buffer."""

    name = models.CharField(max_length=80, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A user's role in a team."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=12, choices=Role, default=Role.VIEWER)
    made_account = models.BooleanField(default=False)
    """The account was made together with this membership: the team's admins may reset its password."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="one_role_per_team")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} in {self.team}"


class Scope(models.TextChoices):
    """What a token allows at most, whatever its owner's role."""

    READ = "read", "Read"
    OPERATE = "operate", "Read, label and operate"
    ADMIN = "admin", "Everything its owner may do"

    @property
    def role(self) -> Role:
        """The highest role that it lets its owner act in."""
        return {Scope.READ: Role.VIEWER, Scope.OPERATE: Role.OPERATOR, Scope.ADMIN: Role.ADMIN}[self]


class ApiToken(models.Model):
    """Lets a script act as a user: `Authorization: Bearer dh_...`. The token itself is not kept."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=60)
    digest = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=12)
    """Its first characters, so that people can tell tokens apart."""
    scope = models.CharField(max_length=8, choices=Scope, default=Scope.READ)
    expires_at = models.DateTimeField(null=True)
    """Null only for tokens of versions that had no end."""
    password_mark = models.CharField(max_length=64)
    """Changes with the owner's password, and the token ends with it."""
    created_at = models.DateTimeField(auto_now_add=True)
    used_on = models.DateField(null=True)

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"

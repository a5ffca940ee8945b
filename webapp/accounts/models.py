"""Teams and what a member may do in them.

Users are Django's own. Everything people see belongs to a team; a role is held per team.
"""

from django.conf import settings
from django.db import models
from django.urls import reverse

from webapp.lib.columns.stored_fields import ReportedCharField, ReportedJSONField


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


class OidcIdentity(models.Model):
    """Who an account is at the OpenID Connect provider."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="oidc_identities"
    )
    issuer = models.CharField(max_length=250)
    """Without a slash at its end."""
    subject = models.CharField(max_length=255)
    """What the provider calls the person, for ever."""

    class Meta:
        verbose_name_plural = "OIDC identities"
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="one_account_per_subject")]

    def __str__(self) -> str:
        return f"{self.user} is {self.subject} at {self.issuer}"


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


class AuditAction(models.TextChoices):
    """What the audit log tells of."""

    SIGNED_IN = "signed_in", "Signed in"
    SIGN_IN_FAILED = "sign_in_failed", "Sign-in failed"
    SIGNED_OUT = "signed_out", "Signed out"
    PASSWORD_CHANGED = "password_changed", "Changed a password"
    MEMBER_ADDED = "member_added", "Added a member"
    ROLE_CHANGED = "role_changed", "Changed a role"
    MEMBER_REMOVED = "member_removed", "Removed a member"
    TWO_STEP_CHANGED = "two_step_changed", "Changed two-step sign-in"
    TOKEN_CREATED = "token_created", "Made a token"
    TOKEN_REVOKED = "token_revoked", "Revoked a token"
    LAUNCHED = "launched", "Launched"
    PAUSED = "paused", "Paused"
    RESUMED = "resumed", "Resumed"
    CANCELLED = "cancelled", "Cancelled"
    CANCEL_UNDONE = "cancel_undone", "Undid a cancel"
    EDITED = "edited", "Renamed, tagged or archived"
    DELETED = "deleted", "Deleted"
    SHARED = "shared", "Shared a report"
    UNSHARED = "unshared", "Revoked a link"
    REORDERED = "reordered", "Changed the queue"
    BRANCHED = "branched", "Branched"
    LABELLED = "labelled", "Labelled"
    LABEL_UNDONE = "label_undone", "Undid a label"
    EXPORTED = "exported", "Exported"
    EXPORT_REMOVED = "export_removed", "Removed an export"
    IMPORTED = "imported", "Imported"
    WATCHED = "watched", "Watched live"
    TOOK_CONTROL = "took_control", "Took control"
    ENDED_CONTROL = "ended_control", "Ended control"
    OPERATED = "operated", "Operated the fleet"
    SAVED = "saved", "Saved a version"
    SECRET_GRANTED = "secret_granted", "Granted a secret"
    RULE_CHANGED = "rule_changed", "Changed a rule"
    RULE_DELETED = "rule_deleted", "Deleted a rule"
    PRICES_CHANGED = "prices_changed", "Changed prices"
    NOTICES_CHANGED = "notices_changed", "Changed notifications"
    ADMINISTERED = "administered", "Used the admin site"


OBJECT_PAGES = {
    "experiment": "experiment-detail",
    "sweep": "sweep-detail",
    "trajectory": "trajectory-detail",
    "group": "group-detail",
    "entry": "replay-detail",
    "desktop": "fleet-desktop",
    "report": "report-detail",
    "scanner": "scanner-detail",
}
"""Kind of an object -> route of its page."""


class AuditEntry(models.Model):
    """One thing that a person did or saw. Rows are added, and deleted when they are old; never changed."""

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    action = models.CharField(max_length=20, choices=AuditAction)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    person_name = ReportedCharField(max_length=150)
    """Stays when the account is deleted; "command line" without one."""
    team = models.ForeignKey(Team, null=True, on_delete=models.SET_NULL, related_name="+")
    """Whose admins see it; null: only the installation's administrators."""
    kind = models.CharField(max_length=20, blank=True)
    object_id = ReportedCharField(max_length=150, blank=True)
    """With `kind` the object: experiment 12, desktop x11-3."""
    detail = ReportedJSONField(default=dict)
    """{name: value} of what else there is to know."""

    class Meta:
        indexes = [
            models.Index(fields=["team", "id"], name="audit_of_team"),
            models.Index(fields=["person_name", "id"], name="audit_of_person"),
            models.Index(fields=["kind", "object_id", "id"], name="audit_of_object"),
        ]

    def __str__(self) -> str:
        return f"{self.person_name}: {self.get_action_display()} {self.kind} {self.object_id}".rstrip()

    @property
    def url(self) -> str:
        """The object's page; "" when it has none."""
        name = OBJECT_PAGES.get(self.kind)
        return reverse(name, args=[self.object_id]) if name and self.object_id else ""

    @property
    def detail_words(self) -> str:
        """What else there is to know: "new account: yes · runs: 6"."""
        said = {True: "yes", False: "no"}
        each = {key: said[it] if isinstance(it, bool) else it for key, it in self.detail.items()}
        return " · ".join(f"{key.replace('_', ' ')}: {it}" for key, it in each.items())


class SavedView(models.Model):
    """A list page's filters, order and hidden columns under a name, of one person or of the whole team."""

    class Page(models.TextChoices):
        EXPERIMENTS = "experiments", "Experiments"
        TRAJECTORIES = "trajectories", "Trajectories"
        REPLAY = "replay", "Replay buffer"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="saved_views")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE)
    """Null: the team's."""
    page = models.CharField(max_length=12, choices=Page)
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000, blank=True)
    """The page's query string, sorted, without "?" and without a place in the list."""

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "owner", "page", "name"], name="view_name_once", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.page})"


class SentRequest(models.Model):
    """A POST with a key of its sender's: sent again within a day it gets this answer and does nothing."""

    digest = models.CharField(max_length=64, unique=True)
    """Of person, team, token and key. The key is not kept: it opens `answer`."""
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    team = models.ForeignKey(Team, null=True, on_delete=models.CASCADE, related_name="+")
    route = models.CharField(max_length=64)
    """Digest of path and query."""
    body = models.CharField(max_length=64)
    """Its digest."""
    claim = models.UUIDField()
    """Of the try that does the work; a later try may take it over from one that died."""
    claimed_at = models.DateTimeField(db_index=True)
    status = models.PositiveSmallIntegerField(null=True)
    """Null while the work runs."""
    headers = models.JSONField(default=dict)
    answer = models.BinaryField(default=bytes)
    """The body, encrypted: some answers hold a password or a join token."""

    def __str__(self) -> str:
        return f"{self.person}: {self.status or 'running'}"

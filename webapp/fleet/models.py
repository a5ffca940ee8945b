"""Hosts, workers and desktops: who is alive, who holds what, and what operators did about it."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.lib.columns.stored_fields import ReportedCharField, ReportedJSONField, ReportedTextField

CLOCK_OFF_S = 2.0


class WorkerStatus(models.TextChoices):
    ONLINE = "online", "Online"
    LOST = "lost", "Lost"
    """Missed its heartbeats; what it held has been taken back."""
    STOPPED = "stopped", "Stopped"


class Worker(models.Model):
    """A process that takes jobs from one queue, known by its Celery node name."""

    name = models.CharField(max_length=120, unique=True)
    queue = models.CharField(max_length=16)
    host = models.CharField(max_length=120)
    pid = models.IntegerField()
    slots = models.IntegerField(default=1)
    version = ReportedCharField(max_length=40, blank=True)
    status = models.CharField(max_length=8, choices=WorkerStatus, default=WorkerStatus.ONLINE)
    is_joined = models.BooleanField(default=False)
    """Of a joined host: it reports over HTTPS, and goes on while the web is away."""
    is_draining = models.BooleanField(default=False)
    """Takes nothing new; what it runs goes on. Stays over restarts, until an operator undrains it."""
    gpus = ReportedJSONField(null=True)
    """[{index, uuid, name, memory_bytes, free_bytes}] of a gpu worker; [] = none, null = not reported yet."""
    cpu_places = models.IntegerField(default=0)
    """Training processes that its host without GPUs has room for; 0 = not counted."""
    address = models.CharField(max_length=200, blank=True)  # by which other gpu hosts reach it; "" = none
    started_at = models.DateTimeField(auto_now_add=True)
    heartbeat_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.name


class Host(models.Model):
    """A machine with a desk host, as one of its env workers mirrors it."""

    name = models.CharField(max_length=120, unique=True)
    mirrored_by = models.CharField(max_length=120, blank=True)
    """Worker that mirrors it; another one takes over when it falls silent."""
    mirrored_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    """When the desk host last answered."""
    started_at = models.DateTimeField(null=True)  # of the desk host
    problem = ReportedTextField(blank=True)
    """Why the desk host does not answer; "" while it does."""
    is_draining = models.BooleanField(default=False)
    max_desktops = models.IntegerField(default=0)
    cores = models.IntegerField(default=0)
    cpu_percent = models.FloatField(default=0)
    """0 to 100 over all cores."""
    load = models.FloatField(default=0)
    memory_mb = models.FloatField(default=0)
    memory_used_mb = models.FloatField(default=0)
    disk_mb = models.FloatField(default=0)
    disk_free_mb = models.FloatField(default=0)
    swept = models.IntegerField(default=0)  # processes of an earlier desk host, ended at its start
    num_resets = models.IntegerField(default=0)
    num_failures = models.IntegerField(default=0)
    reset_p50_s = models.FloatField(default=0)
    reset_p99_s = models.FloatField(default=0)
    """Of the last minute; 0 without a reset."""
    providers = ReportedJSONField(default=list)
    """[{provider, usable, mode, reasons, remedies}]"""
    pool = ReportedJSONField(default=list)
    """[{provider, width, height, leased, ready, coming, wanted, problem}]"""
    snapshots = ReportedJSONField(default=dict)
    """{count, max_count, size_mb, max_mb} of the saved states of running desktops."""
    leaks = ReportedJSONField(default=list)
    """[{kind, name, detail}] of desktops that no book accounts for; has to stay empty."""

    def __str__(self) -> str:
        return self.name


class JoinedHost(models.Model):
    """A host that works for this installation over HTTPS alone, and how far its reports have come."""

    host = models.OneToOneField(Host, on_delete=models.CASCADE, related_name="joined")
    digest = models.CharField(max_length=64)  # sha256 of its secret
    version = ReportedCharField(max_length=40)  # of its program, when it was last heard
    stream = models.CharField(max_length=32, blank=True)
    """Its spool; a new one counts from 1 again."""
    received = models.BigIntegerField(default=0)
    """Number of the last report of the stream that was recorded."""
    num_refused = models.IntegerField(default=0)  # reports that could not be recorded, since it joined
    clock_skew_s = models.FloatField(default=0)  # how far its clock is ahead of ours, at its last call
    heard_at = models.DateTimeField()
    joined_at = models.DateTimeField()
    invited_by_name = models.CharField(max_length=150)
    roles = ReportedJSONField(default=list)  # of `joined_identity.ROLES`: what it may be used for
    team = models.ForeignKey("accounts.Team", null=True, on_delete=models.CASCADE)  # its only one; null = all
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return self.host.name

    @property
    def is_clock_off(self) -> bool:
        """Times of its turns would be misleading."""
        return abs(self.clock_skew_s) > CLOCK_OFF_S


class HostSample(models.Model):
    """How a host stood last within `width_s` seconds, for the charts; services/history.py writes it."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="samples")
    width_s = models.IntegerField()
    bucket = models.BigIntegerField()
    """The epoch's seconds // width_s."""
    ready = models.IntegerField()
    leased = models.IntegerField()
    booting = models.IntegerField()
    """Starting, or being cleaned."""
    dead = models.IntegerField()
    quarantined = models.IntegerField()
    reset_p50_s = models.FloatField()
    reset_p99_s = models.FloatField()
    leaks = models.IntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["width_s", "bucket", "host"], name="host_sample_once")]

    def __str__(self) -> str:
        return f"{self.host_id} at {self.bucket * self.width_s}"


class EndedMinute(models.Model):
    """How many trajectories of all teams ended within a minute, without cancelled ones."""

    minute = models.BigIntegerField(primary_key=True)
    """The epoch's seconds // 60."""
    num_ended = models.IntegerField()
    num_errored = models.IntegerField()

    def __str__(self) -> str:
        return f"{self.num_errored} of {self.num_ended} errored"


class JoinToken(models.Model):
    """Lets hosts join, until a date and a count. The token itself is not kept."""

    digest = models.CharField(max_length=64, unique=True)
    made_by_name = models.CharField(max_length=150)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)  # last
    num_hosts, most_hosts = models.IntegerField(default=0), models.IntegerField(null=True, default=1)
    roles = ReportedJSONField(default=list)  # what the host may be used for
    team = models.ForeignKey("accounts.Team", null=True, on_delete=models.CASCADE)  # of the host; null = all

    def __str__(self) -> str:
        return f"join token {self.pk} of {self.made_by_name}"


class DesktopPhase(models.TextChoices):
    STARTING = "starting", "Starting"
    READY = "ready", "Ready"
    LEASED = "leased", "Leased"
    RESETTING = "resetting", "Resetting"
    DEAD = "dead", "Dead"
    QUARANTINED = "quarantined", "Quarantined"
    GONE = "gone", "Gone"


class Desktop(models.Model):
    """A machine that a desk host owns, mirrored here for people and for trajectories."""

    name = models.CharField(max_length=64, unique=True)
    """The desk host's own id."""
    host = models.CharField(max_length=120)
    provider = ReportedCharField(max_length=24)
    phase = models.CharField(max_length=12, choices=DesktopPhase, default=DesktopPhase.STARTING)
    boot_phase = ReportedCharField(max_length=80, blank=True)
    """How far it is while it starts, in its provider's words."""
    generation = models.IntegerField(default=0)
    width = models.IntegerField()
    height = models.IntegerField()
    worker = models.ForeignKey(Worker, null=True, on_delete=models.SET_NULL, related_name="desktops")
    holder = ReportedCharField(max_length=160, blank=True)
    """Who holds the lease, in the holder's words: WORKER/THREAD of an env worker."""
    lease_until = models.DateTimeField(null=True)
    """Unless it is renewed before."""
    num_resets = models.IntegerField(default=0)
    num_rebuilds = models.IntegerField(default=0)
    num_failures = models.IntegerField(default=0)
    last_reset_s = models.FloatField(default=0)
    cpu_percent = models.FloatField(default=0)
    """Of one core."""
    memory_mb = models.FloatField(default=0)
    num_processes = models.IntegerField(default=0)
    reason = ReportedTextField(blank=True)
    """Why it is dead, with its last log lines, or why it was last rebuilt."""
    quarantine = ReportedTextField(blank=True)
    """Why an operator keeps it as it is."""
    log = ReportedTextField(blank=True)
    """End of its console log while it is dead or quarantined."""
    has_vnc = models.BooleanField(default=False)
    born_at = models.DateTimeField(null=True)  # start of this generation
    mirrored_at = models.DateTimeField(null=True)
    """When its desk host last reported it; null: no desk host does (a remote service's desktop)."""
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [models.Index(fields=["host"], condition=~Q(phase="gone"), name="desktop_living_on_host")]

    def __str__(self) -> str:
        return self.name


class BootFailure(models.Model):
    """A desktop that did not come up."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="boot_failures")
    number = models.IntegerField()
    """The desk host's own count; starts again when the desk host does."""
    at = models.DateTimeField(db_index=True)
    desktop_name = ReportedCharField(max_length=64)
    provider = ReportedCharField(max_length=24)
    boot_phase = ReportedCharField(max_length=80, blank=True)
    reason = ReportedTextField()
    log = ReportedTextField(blank=True)
    screenshot = models.CharField(max_length=80, blank=True)
    """Path below MEDIA_ROOT of the last picture of its screen."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["host", "number", "at"], name="boot_failure_once")]

    def __str__(self) -> str:
        return f"{self.desktop_name}: {self.reason[:60]}"


class Verb(models.TextChoices):
    """What an operator may ask for."""

    DRAIN = "drain", "Drain"
    UNDRAIN = "undrain", "Undrain"
    RESTART = "restart", "Restart"
    QUARANTINE = "quarantine", "Quarantine"
    RELEASE = "release", "Release"
    KILL = "kill", "Kill"


class TargetKind(models.TextChoices):
    HOST = "host", "Host"
    WORKER = "worker", "Worker"
    DESKTOP = "desktop", "Desktop"


class OperationStatus(models.TextChoices):
    """asked -> running -> done | failed; asked -> expired"""

    ASKED = "asked", "Asked"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    EXPIRED = "expired", "Expired"
    """No worker of its host took it in time."""


class Operation(models.Model):
    """Something that an operator asked of a host, worker or desktop, and what became of it."""

    verb = models.CharField(max_length=12, choices=Verb)
    kind = models.CharField(max_length=8, choices=TargetKind)
    target = models.CharField(max_length=120)
    host = models.CharField(max_length=120)
    """Machine whose mirror carries it out."""
    reason = ReportedCharField(max_length=300, blank=True)
    status = models.CharField(max_length=8, choices=OperationStatus, default=OperationStatus.ASKED)
    outcome = ReportedTextField(blank=True)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    asked_by_name = models.CharField(max_length=150)
    """Stays when the account is deleted."""
    asked_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["host"], condition=Q(status__in=["asked", "running"]), name="operation_open_on_host"
            )
        ]

    def __str__(self) -> str:
        return f"{self.verb} {self.target}"

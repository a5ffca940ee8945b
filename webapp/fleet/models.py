"""Hosts, workers and desktops: who is alive and who holds what."""

from django.db import models


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
    version = models.CharField(max_length=40, blank=True)
    status = models.CharField(max_length=8, choices=WorkerStatus, default=WorkerStatus.ONLINE)
    started_at = models.DateTimeField(auto_now_add=True)
    heartbeat_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.name


class DesktopPhase(models.TextChoices):
    STARTING = "starting", "Starting"
    READY = "ready", "Ready"
    LEASED = "leased", "Leased"
    RESETTING = "resetting", "Resetting"
    DEAD = "dead", "Dead"
    GONE = "gone", "Gone"


class Desktop(models.Model):
    """A machine that a desk host owns, mirrored here for people and for trajectories."""

    name = models.CharField(max_length=64, unique=True)
    """The desk host's own id."""
    host = models.CharField(max_length=120)
    provider = models.CharField(max_length=24)
    phase = models.CharField(max_length=10, choices=DesktopPhase, default=DesktopPhase.STARTING)
    width = models.IntegerField()
    height = models.IntegerField()
    worker = models.ForeignKey(Worker, null=True, on_delete=models.SET_NULL, related_name="desktops")
    num_resets = models.IntegerField(default=0)
    num_failures = models.IntegerField(default=0)
    reason = models.TextField(blank=True)
    """Why it is dead, with its last log lines."""
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.name

"""Deliveries have the columns of all long work."""

from typing import Any

from django.db import migrations, models
from django.db.models import F

import webapp.lib.columns.stored_fields


def note_ends(apps: Any, _schema: Any) -> None:
    """The last try of one that is over was its end."""
    ended = apps.get_model("notifications", "Delivery").objects.filter(status__in=("delivered", "failed"))
    ended.update(ended_at=F("tried_at"))


class Migration(migrations.Migration):
    dependencies = [("notifications", "0001_initial")]

    operations = [
        migrations.RenameField("delivery", "problem", "message"),
        migrations.AlterField(
            "delivery", "message", webapp.lib.columns.stored_fields.ReportedTextField(blank=True)
        ),
        migrations.AddField("delivery", "claim", models.IntegerField(default=0)),
        migrations.AddField("delivery", "num_lost", models.IntegerField(default=0)),
        migrations.AddField("delivery", "heartbeat_at", models.DateTimeField(null=True)),
        migrations.AddField("delivery", "ended_at", models.DateTimeField(null=True)),
        migrations.RunPython(note_ends, migrations.RunPython.noop),
        migrations.RemoveField("delivery", "tried_at"),
        migrations.AlterField(
            "delivery",
            "status",
            models.CharField(
                choices=[
                    ("waiting", "Waiting"),
                    ("sending", "Sending"),
                    ("delivered", "Delivered"),
                    ("failed", "Failed"),
                    ("dropped", "Dropped"),
                ],
                default="waiting",
                max_length=9,
            ),
        ),
        migrations.AlterField("delivery", "created_at", models.DateTimeField(auto_now_add=True)),
    ]

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0016_copies")]

    operations = [
        migrations.AddField("experiment", "placed_members", models.JSONField(default=list)),
        migrations.AddField(
            "attempt", "gang_secret", models.TextField(blank=True, default=""), preserve_default=False
        ),
        migrations.CreateModel(
            name="GangMember",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("host", models.IntegerField()),
                ("worker_name", models.CharField(max_length=120)),
                ("address", models.CharField(blank=True, max_length=300)),
                ("problem", models.TextField(blank=True)),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="gang",
                        to="experiments.attempt",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("attempt", "host"), name="gang_host_once")
                ]
            },
        ),
    ]

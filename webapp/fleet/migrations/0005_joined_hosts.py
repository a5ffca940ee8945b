import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0004_host_snapshots")]

    operations = [
        migrations.AddField("worker", "is_joined", models.BooleanField(default=False)),
        migrations.CreateModel(
            name="JoinToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("made_by_name", models.CharField(max_length=150)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="JoinedHost",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "host",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="joined", to="fleet.host"
                    ),
                ),
                ("digest", models.CharField(max_length=64)),
                ("version", models.CharField(max_length=40)),
                ("stream", models.CharField(blank=True, max_length=32)),
                ("received", models.BigIntegerField(default=0)),
                ("num_refused", models.IntegerField(default=0)),
                ("clock_skew_s", models.FloatField(default=0)),
                ("heard_at", models.DateTimeField()),
                ("joined_at", models.DateTimeField()),
                ("invited_by_name", models.CharField(max_length=150)),
                ("revoked_at", models.DateTimeField(null=True)),
            ],
        ),
    ]

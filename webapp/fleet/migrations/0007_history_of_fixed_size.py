from django.db import migrations, models
from django.db.models import Max

from webapp.lib.time_sql_functions import TimeBucket

WIDTHS_S = {10: 3600, 60: 6 * 3600, 240: 24 * 3600, 720: 72 * 3600}
"""Width of a sample -> the window that it is for."""
COLUMNS = ("ready", "leased", "booting", "dead", "quarantined", "reset_p50_s", "reset_p99_s", "leaks")


def fill_buckets(apps, schema_editor):
    """Of each host its last sample in a bucket, 360 per width; then the samples themselves go."""
    samples = apps.get_model("fleet", "HostSample").objects
    newest = samples.aggregate(newest=Max("at"))["newest"]
    if newest is None:
        return
    for width_s, window_s in WIDTHS_S.items():
        old = samples.filter(width_s=0).annotate(number=TimeBucket("at", width_s))
        reached = old.filter(number__gt=(int(newest.timestamp()) - window_s) // width_s)
        last = reached.values("number", "host_id").order_by().annotate(last=Max("id")).values("last")
        rows = samples.filter(id__in=last).annotate(number=TimeBucket("at", width_s))
        samples.bulk_create(
            (
                samples.model(
                    host_id=row["host_id"],
                    at=row["at"],
                    width_s=width_s,
                    bucket=row["number"],
                    num_resets=0,
                    cpu_percent=0,
                    **{name: row[name] for name in COLUMNS},
                )
                for row in rows.values("host_id", "at", "number", *COLUMNS)
            ),
            batch_size=1000,
        )
    samples.filter(width_s=0).delete()


class Migration(migrations.Migration):
    dependencies = [("fleet", "0006_placement")]

    operations = [
        migrations.CreateModel(
            name="EndedMinute",
            fields=[
                ("minute", models.BigIntegerField(primary_key=True, serialize=False)),
                ("num_ended", models.IntegerField()),
                ("num_errored", models.IntegerField()),
            ],
        ),
        migrations.AddField(
            model_name="hostsample",
            name="width_s",
            field=models.IntegerField(default=0),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="hostsample",
            name="bucket",
            field=models.BigIntegerField(default=0),
            preserve_default=False,
        ),
        migrations.RunPython(fill_buckets, migrations.RunPython.noop, elidable=True),
    ]

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("replay", "0008_reviews"),
        ("trajectories", "0018_attacks"),
    ]

    operations = [
        migrations.AddField("replayentry", "part", models.IntegerField(default=0)),
        migrations.AlterField(
            "replayentry",
            "trajectory",
            models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="replay_entries",
                to="trajectories.trajectory",
            ),
        ),
        migrations.AddConstraint(
            "replayentry",
            models.UniqueConstraint(fields=("trajectory", "part"), name="entry_once_per_part"),
        ),
    ]

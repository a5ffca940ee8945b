"""With the score, the solved trajectories of a family are counted out of the index alone."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("trajectories", "0019_milestones")]

    operations = [
        migrations.RemoveIndex("trajectory", "trajectory_by_family"),
        migrations.AddIndex(
            "trajectory",
            models.Index(fields=["team", "family", "-id", "score"], name="trajectory_by_family"),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("trajectories", "0014_tokens")]

    operations = [
        migrations.AddField("frame", "num_bytes", models.IntegerField(null=True)),
        migrations.AddField("trajectory", "pruned_at", models.DateTimeField(null=True)),
        migrations.AddIndex("frame", models.Index(fields=["sha256"], name="frame_by_sha256")),
        migrations.AddIndex(
            "trajectory", models.Index(fields=["final_frame"], name="trajectory_by_final_frame")
        ),
        migrations.AddIndex("turnrecord", models.Index(fields=["frame"], name="turn_by_frame")),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("trajectories", "0018_attacks")]

    operations = [migrations.AddField("trajectory", "milestones", models.JSONField(default=list))]

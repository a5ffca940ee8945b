from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("trajectories", "0012_sorts_of_the_list")]

    operations = [
        migrations.AddField(
            model_name="turnrecord",
            name="spent_ms",
            field=models.JSONField(null=True),
        ),
    ]

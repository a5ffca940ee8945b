from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("trajectories", "0009_limit")]

    operations = [
        migrations.AddField("trajectory", "fingerprint", models.CharField(max_length=300, null=True)),
        migrations.AddField("turnrecord", "is_context", models.BooleanField(default=False)),
    ]

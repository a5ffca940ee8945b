from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0008_history_once_per_bucket")]

    operations = [
        migrations.AddField(
            "worker",
            "address",
            models.CharField(blank=True, default="", max_length=200),
            preserve_default=False,
        ),
    ]

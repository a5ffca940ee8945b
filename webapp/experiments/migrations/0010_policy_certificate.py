from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0009_tags_and_archive")]

    operations = [
        migrations.AddField("attempt", "policy_certificate", models.TextField(blank=True, default=""), preserve_default=False),
        migrations.AlterField("attempt", "policy_url", models.CharField(blank=True, max_length=300)),
    ]

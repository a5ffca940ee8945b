from django.db import migrations, models
from django.db.models import F


def count_used(apps, schema_editor):
    """A token that was used before it had a count is used up."""
    apps.get_model("fleet", "JoinToken").objects.exclude(used_at=None).update(num_hosts=F("most_hosts"))


class Migration(migrations.Migration):
    dependencies = [("fleet", "0012_team_of_joined_hosts")]

    operations = [
        migrations.AddField("jointoken", "most_hosts", models.IntegerField(default=1, null=True)),
        migrations.AddField("jointoken", "num_hosts", models.IntegerField(default=0)),
        migrations.RunPython(count_used, migrations.RunPython.noop),
    ]

from django.db import migrations


def name_by_meaning(apps, schema_editor):
    """`slime-osworld.v2` of before was that of a score that counts only where the agent ended it."""
    for model in ("Experiment", "Sweep"):
        rows = apps.get_model("experiments", model).objects.filter(config__rewards__preset="slime-osworld.v2")
        for row in rows.only("pk", "config").iterator():
            row.config["rewards"]["preset"] = "slime-osworld-ended.v1"
            row.save(update_fields=["config"])


class Migration(migrations.Migration):
    dependencies = [("experiments", "0024_long_work")]
    operations = [migrations.RunPython(name_by_meaning, migrations.RunPython.noop)]

from django.db import migrations
from django.db.models import F, Value
from django.db.models.functions import Concat


def run_as_before(apps, schema_editor):
    """Windows machines took what the Linux runtimes take; the next import judges each task anew."""
    tasks = apps.get_model("experiments", "TaskRecord").objects
    for before, now in (("|own|", "windows|"), ("|osworld|", "osworld-windows|")):
        tasks.filter(runs_on__contains=before).update(runs_on=Concat(F("runs_on"), Value(now)))


class Migration(migrations.Migration):
    dependencies = [("experiments", "0019_solved_by_the_agent")]
    operations = [migrations.RunPython(run_as_before, migrations.RunPython.noop)]

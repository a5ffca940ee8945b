"""Roles belong to the token and to the host that joined by it; hosts that are here keep what they do."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def roles_of_workers(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    workers = apps.get_model("fleet", "Worker").objects.filter(is_joined=True)
    for row in apps.get_model("fleet", "JoinedHost").objects.select_related("host"):
        row.roles = sorted(set(workers.filter(host=row.host.name).values_list("queue", flat=True))) or ["env"]
        row.save(update_fields=["roles"])


class Migration(migrations.Migration):
    dependencies = [("fleet", "0009_worker_address")]
    operations = [
        migrations.AddField("joinedhost", "roles", models.JSONField(default=list)),
        migrations.AddField("jointoken", "roles", models.JSONField(default=list)),
        migrations.RunPython(roles_of_workers, migrations.RunPython.noop),
    ]

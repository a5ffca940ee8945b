"""Train groups tell their step as charts and replay uses do: counted from 1."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import F, Q


def _shift(apps: Apps, by: int) -> None:
    """Branches have the step of the trajectory that they were continued from."""
    for name, parent in (("Group", "parent"), ("Trajectory", "group__parent")):
        of_branch = Q(**{"purpose": "branch", f"{parent}__purpose__in": ["train", "branch"]})
        rows = apps.get_model("trajectories", name).objects.filter(Q(purpose="train") | of_branch)
        rows.filter(experiment__isnull=False).update(step=F("step") + by)


def count_from_one(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    _shift(apps, 1)


def count_from_zero(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    _shift(apps, -1)


class Migration(migrations.Migration):
    dependencies = [("trajectories", "0007_final_frame_and_thumbnail")]

    operations = [migrations.RunPython(count_from_one, count_from_zero)]

import django.db.models.deletion
from django.db import migrations, models


def count_samples(apps, schema_editor):
    """Until now every task had one sample."""
    apps.get_model("experiments", "Evaluation").objects.update(num_samples=models.F("num_tasks"))


class Migration(migrations.Migration):

    dependencies = [("experiments", "0004_checkpoints_on_demand")]

    operations = [
        migrations.RemoveConstraint(model_name="evaluation", name="evaluation_once"),
        migrations.AddField(
            model_name="evaluation", name="samples_per_task", field=models.IntegerField(default=1)
        ),
        migrations.AddField(
            model_name="evaluation",
            name="num_samples",
            field=models.IntegerField(default=0),
            preserve_default=False,
        ),
        migrations.AddConstraint(
            model_name="evaluation",
            constraint=models.UniqueConstraint(
                fields=("experiment", "name", "step", "temperature"), name="evaluation_once_per_temperature"
            ),
        ),
        migrations.CreateModel(
            name="EvaluationTasks",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("results", models.JSONField()),
                (
                    "evaluation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tasks",
                        to="experiments.evaluation",
                    ),
                ),
            ],
        ),
        migrations.RunPython(count_samples, migrations.RunPython.noop, elidable=True),
    ]

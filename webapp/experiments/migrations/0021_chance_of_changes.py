from django.db import migrations, models


def keep_chance(apps, schema_editor):
    """Lists colour gains by it: without, those of older runs would all be shown as chance."""
    from training.statistics.paired_statistics import paired_change

    Evaluation = apps.get_model("experiments", "Evaluation")
    first = {
        (pk, temperature): results
        for pk, temperature, results in Evaluation.objects.filter(name="before", tasks__isnull=False).values_list(
            "experiment_id", "temperature", "tasks__results"
        )
    }
    for one in Evaluation.objects.exclude(name="before").filter(tasks__isnull=False).select_related("tasks").iterator():
        before = first.get((one.experiment_id, one.temperature))
        change = paired_change(before, one.tasks.results) if before else None
        if change:
            one.p_of_change = change.p
            one.save(update_fields=["p_of_change"])


class Migration(migrations.Migration):

    dependencies = [
        ("experiments", "0020_windows_runtimes"),
    ]

    operations = [
        migrations.AddField(
            model_name="evaluation",
            name="p_of_change",
            field=models.FloatField(null=True),
        ),
        migrations.RunPython(keep_chance, migrations.RunPython.noop),
    ]

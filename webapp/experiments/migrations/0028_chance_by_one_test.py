from django.db import migrations


def compute_anew(apps, schema_editor):
    """Older ones are of a sign test: beside a task matrix, which is computed when it is read, they differ."""
    from training.statistics.paired_statistics import paired_change

    Evaluation = apps.get_model("experiments", "Evaluation")
    with_tasks = Evaluation.objects.filter(tasks__isnull=False).select_related("tasks")
    first = {
        (one.experiment_id, one.temperature): (one.solved is None, one.tasks.results)
        for one in with_tasks.filter(name="before")
    }
    for one in with_tasks.exclude(name="before").order_by("pk").iterator():
        if (one.experiment_id, one.temperature) not in first:
            continue
        is_by_state, before = first[one.experiment_id, one.temperature]
        is_by_state = is_by_state or one.solved is None
        change = paired_change(counted(before, is_by_state), counted(one.tasks.results, is_by_state))
        p = change.p if change else None
        if p != one.p_of_change:
            one.p_of_change = p
            one.save(update_fields=["p_of_change"])


def counted(results, is_by_state):
    """(solved, samples) of each task: without those that a limit ended unless by the state."""
    return {
        name: (won - (0 if is_by_state else sum(at_limit)), samples)
        for name, (won, samples, _, *at_limit) in results.items()
    }


class Migration(migrations.Migration):
    dependencies = [("experiments", "0027_checkpoint_attempt")]
    operations = [migrations.RunPython(compute_anew, migrations.RunPython.noop)]

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("accounts", "0002_api_token"), ("experiments", "0006_alarm_status")]

    operations = [
        migrations.CreateModel(
            name="RetentionRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("max_age_days", models.PositiveIntegerField(null=True)),
                ("max_bytes", models.BigIntegerField(null=True)),
                (
                    "experiment",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="retention_rule",
                        to="experiments.experiment",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="retention_rules",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("experiment", None)),
                        fields=("team",),
                        name="one_rule_for_the_rest",
                    )
                ],
            },
        ),
    ]

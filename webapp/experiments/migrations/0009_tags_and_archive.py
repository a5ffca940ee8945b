from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0008_costs")]

    operations = [
        migrations.AddField(
            model_name="experiment", name="tags", field=models.JSONField(default=list)
        ),
        migrations.AddField(
            model_name="experiment", name="archived_at", field=models.DateTimeField(null=True)
        ),
    ]

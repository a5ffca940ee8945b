import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_token_scope_and_expiry"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("at", models.DateTimeField(auto_now_add=True, db_index=True)),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("signed_in", "Signed in"),
                            ("sign_in_failed", "Sign-in failed"),
                            ("signed_out", "Signed out"),
                            ("password_changed", "Changed a password"),
                            ("member_added", "Added a member"),
                            ("role_changed", "Changed a role"),
                            ("member_removed", "Removed a member"),
                            ("token_created", "Made a token"),
                            ("token_revoked", "Revoked a token"),
                            ("launched", "Launched"),
                            ("paused", "Paused"),
                            ("resumed", "Resumed"),
                            ("cancelled", "Cancelled"),
                            ("cancel_undone", "Took a cancel back"),
                            ("reordered", "Changed the queue"),
                            ("branched", "Branched"),
                            ("labelled", "Labelled"),
                            ("label_undone", "Took a label back"),
                            ("exported", "Exported"),
                            ("export_removed", "Removed an export"),
                            ("imported", "Imported"),
                            ("watched", "Watched live"),
                            ("took_control", "Took control"),
                            ("ended_control", "Ended control"),
                            ("operated", "Operated the fleet"),
                            ("secret_granted", "Granted a secret"),
                            ("administered", "Used the admin site"),
                        ],
                        max_length=20,
                    ),
                ),
                ("person_name", models.CharField(max_length=150)),
                ("kind", models.CharField(blank=True, max_length=20)),
                ("object_id", models.CharField(blank=True, max_length=150)),
                ("detail", models.JSONField(default=dict)),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["team", "id"], name="audit_of_team"),
                    models.Index(fields=["person_name", "id"], name="audit_of_person"),
                    models.Index(fields=["kind", "object_id", "id"], name="audit_of_object"),
                ],
            },
        ),
    ]

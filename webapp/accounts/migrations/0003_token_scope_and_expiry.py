"""Tokens get a scope, an end and a mark of the password; memberships say who made the account."""

from django.db import migrations, models
from django.utils.crypto import salted_hmac


def mark_tokens(apps, schema_editor):
    """Tokens of before keep what they could do, until the password changes."""
    for token in apps.get_model("accounts", "ApiToken").objects.select_related("user"):
        mark = salted_hmac("webapp.accounts.ApiToken", token.user.password, algorithm="sha256")
        token.scope, token.password_mark = "admin", mark.hexdigest()
        token.save(update_fields=["scope", "password_mark"])


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_api_token")]

    operations = [
        migrations.AddField(
            "membership", "made_account", models.BooleanField(default=False), preserve_default=True
        ),
        migrations.AddField(
            "apitoken",
            "scope",
            models.CharField(
                choices=[
                    ("read", "Read"),
                    ("operate", "Read, label and operate"),
                    ("admin", "Everything its owner may do"),
                ],
                default="read",
                max_length=8,
            ),
        ),
        migrations.AddField("apitoken", "expires_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "apitoken", "password_mark", models.CharField(default="", max_length=64), preserve_default=False
        ),
        migrations.RunPython(mark_tokens, migrations.RunPython.noop),
    ]

"""Name, password and, where a person has turned two-step sign-in on, a code."""

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed

from webapp.accounts.two_step.services import is_on, uses_code


class SignInForm(AuthenticationForm):
    """A wrong code reads like a wrong password, and is counted as one."""

    code = forms.CharField(required=False, max_length=20)
    error_messages = {
        **AuthenticationForm.error_messages,
        "invalid_login": (
            "The name, the password or the code is wrong. Name and password may be case-sensitive; the code "
            "is needed when two-step sign-in is on."
        ),
    }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        user = self.get_user()
        if isinstance(user, User) and is_on(user) and not uses_code(user, cleaned.get("code", "")):
            credentials = {"username": user.get_username()}
            user_login_failed.send(sender=__name__, credentials=credentials, request=self.request)
            self.user_cache = None
            raise self.get_invalid_login_error()
        return cleaned

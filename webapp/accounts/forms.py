"""Forms of the team and profile pages."""

from django import forms
from django.contrib.auth.validators import UnicodeUsernameValidator

from webapp.accounts.models import Role


class MemberForm(forms.Form):
    """A person to put into the team."""

    username = forms.CharField(max_length=150, validators=[UnicodeUsernameValidator()])
    role = forms.ChoiceField(choices=Role.choices, initial=Role.VIEWER)


class RoleForm(forms.Form):
    """Another role for a member."""

    role = forms.ChoiceField(choices=Role.choices)


class TokenForm(forms.Form):
    """A name for a new API token."""

    name = forms.CharField(max_length=60)

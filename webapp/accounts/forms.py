"""Forms of the team and profile pages."""

from django import forms
from django.contrib.auth.validators import UnicodeUsernameValidator

from webapp.accounts.models import Role, Scope
from webapp.accounts.services.tokens import DAYS


class MemberForm(forms.Form):
    """A person to put into the team."""

    username = forms.CharField(max_length=150, validators=[UnicodeUsernameValidator()])
    role = forms.ChoiceField(choices=Role.choices, initial=Role.VIEWER)


class RoleForm(forms.Form):
    """Another role for a member."""

    role = forms.ChoiceField(choices=Role.choices)


class TokenForm(forms.Form):
    """A name for a new API token, what it allows and for how long."""

    name = forms.CharField(max_length=60)
    scope = forms.ChoiceField(choices=Scope.choices)
    days = forms.TypedChoiceField(choices=[(days, f"{days} days") for days in DAYS], coerce=int)

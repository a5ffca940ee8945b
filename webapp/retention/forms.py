"""The form of a rule."""

from typing import Any

from django import forms
from django.contrib.auth.models import AbstractBaseUser

from webapp.accounts.models import Team
from webapp.experiments.models import Experiment
from webapp.retention.models import RetentionRule
from webapp.retention.services.rules import set_rule

GB = 10**9


class RuleForm(forms.ModelForm):
    """A rule for one experiment of the team, or for the rest of them."""

    max_gb = forms.FloatField(required=False, min_value=0, max_value=10**6)

    class Meta:
        model = RetentionRule
        fields = ("experiment", "max_age_days")

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.team = team
        field = self.fields["experiment"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Experiment.objects.filter(team=team)
        field.required = self.fields["max_age_days"].required = False
        self.fields["max_age_days"].widget.attrs["max"] = 36_500

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if values.get("max_age_days") is None and values.get("max_gb") is None and not self.errors:
            raise forms.ValidationError("max_age_days or max_gb: give at least one of them.")
        if (values.get("max_age_days") or 0) > 36_500:
            raise forms.ValidationError("max_age_days: at most 36500.")
        return values

    def validate_unique(self) -> None:
        """A second rule for the same experiments replaces the first one."""

    def store(self, by: AbstractBaseUser) -> RetentionRule:
        """Make the rule, or change the one that there is."""
        values = self.cleaned_data
        max_gb = values["max_gb"]
        limits = {
            "max_age_days": values["max_age_days"],
            "max_bytes": None if max_gb is None else round(max_gb * GB),
        }
        return set_rule(team=self.team, experiment=values["experiment"], limits=limits, by=by)

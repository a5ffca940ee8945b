"""Django's admin: every registered list opens, for superusers only."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse

from testing.factories import make_user

pytestmark = pytest.mark.django_db


def test_every_list_opens_for_a_superuser_and_for_nobody_else(client):
    paths = [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in admin.site._registry
    ]
    assert len(paths) >= 5
    client.force_login(make_user("admin"))
    assert {client.get(path).status_code for path in paths} == {302}
    client.force_login(User.objects.create_superuser("root"))
    assert {path: client.get(path).status_code for path in paths} == dict.fromkeys(paths, 200)

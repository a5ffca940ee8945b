"""Routes of single sign-on, and its row."""

from django.conf import settings
from django.urls import path

from webapp.accounts.identity_providers.contract import IdentityProvider
from webapp.accounts.identity_providers.oidc import provider, views

OIDC = IdentityProvider(
    label=lambda: settings.OIDC_NAME if provider.is_configured() else "",
    start="sso-start",
    routes=(
        path("login/sso/", views.start, name="sso-start"),
        path("login/sso/callback/", views.come_back, name="sso-callback"),
    ),
)

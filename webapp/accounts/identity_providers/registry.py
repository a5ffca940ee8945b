"""The ways to sign in beside a password."""

from webapp.accounts.identity_providers.contract import IdentityProvider
from webapp.accounts.identity_providers.oidc.urls import OIDC

IDENTITY_PROVIDERS: tuple[IdentityProvider, ...] = (OIDC,)

"""Routes of sign-in, team and profile."""

from django.contrib.auth import views as auth_views
from django.urls import path

from webapp.accounts import saved_view_pages, views
from webapp.accounts.audit import views as audit_views
from webapp.accounts.identity_providers.registry import IDENTITY_PROVIDERS
from webapp.accounts.two_step import views as two_step_views

urlpatterns = [
    path("login/", views.LoginView.as_view(), name="login"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    *(route for provider in IDENTITY_PROVIDERS for route in provider.routes),
    path("profile/two-step/", two_step_views.show, name="two-step-show"),
    path("profile/two-step/on/", two_step_views.turn_on, name="two-step-on"),
    path("profile/two-step/off/", two_step_views.turn_off, name="two-step-off"),
    path("profile/", views.show_profile, name="profile-show"),
    path("profile/password/", views.PasswordView.as_view(), name="password-change"),
    path("profile/tokens/", views.create_token, name="token-create"),
    path("profile/tokens/<int:pk>/revoke/", views.revoke_token, name="token-revoke"),
    path("views/", saved_view_pages.save, name="view-save"),
    path("views/<int:pk>/delete/", saved_view_pages.delete, name="view-delete"),
    path("team/", views.show_team, name="team-show"),
    path("team/members/", views.add_member, name="member-add"),
    path("team/members/<int:pk>/role/", views.change_role, name="member-role"),
    path("team/members/<int:pk>/remove/", views.remove_member, name="member-remove"),
    path("team/members/<int:pk>/password/", views.reset_password, name="member-password"),
    path("audit/", audit_views.audit_log, name="audit-list"),
    path("audit/export/", audit_views.export_audit_log, name="audit-export"),
    path("teams/<int:pk>/switch/", views.switch_team, name="team-switch"),
]

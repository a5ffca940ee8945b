"""Routes of sign-in, team and profile."""

from django.contrib.auth import views as auth_views
from django.urls import path

from webapp.accounts import views
from webapp.accounts.audit import views as audit_views

urlpatterns = [
    path("login/", views.LoginView.as_view(), name="login"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("profile/", views.show_profile, name="profile-show"),
    path("profile/password/", views.PasswordView.as_view(), name="password-change"),
    path("profile/tokens/", views.create_token, name="token-create"),
    path("profile/tokens/<int:pk>/revoke/", views.revoke_token, name="token-revoke"),
    path("team/", views.show_team, name="team-show"),
    path("team/members/", views.add_member, name="member-add"),
    path("team/members/<int:pk>/role/", views.change_role, name="member-role"),
    path("team/members/<int:pk>/remove/", views.remove_member, name="member-remove"),
    path("team/members/<int:pk>/password/", views.reset_password, name="member-password"),
    path("audit/", audit_views.audit_log, name="audit-list"),
    path("audit/export/", audit_views.export_audit_log, name="audit-export"),
    path("teams/<int:pk>/switch/", views.switch_team, name="team-switch"),
]

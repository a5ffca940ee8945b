"""Starts the audit log with the applications, also for Django's admin site."""

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps


class AccountsConfig(AppConfig):
    name = "webapp.accounts"
    default = True

    def ready(self) -> None:
        from webapp.accounts.audit import sign_ins

        sign_ins.connect()


class AuditedAdminConfig(admin_apps.AdminConfig):
    """Django's admin, with a row in the audit log for what is changed there."""

    default = False
    default_site = "webapp.accounts.audit.admin_site.AuditedAdminSite"

"""Teams and memberships in Django's admin."""

from django.contrib import admin

from webapp.accounts.models import ApiToken, Membership, OidcIdentity, Team


class MembershipInline(admin.TabularInline):
    model = Membership
    autocomplete_fields = ["user"]
    extra = 0


@admin.register(Team)
class TeamAdmin(admin.ModelAdmin):
    list_display = ["name", "created_at"]
    search_fields = ["name"]
    inlines = [MembershipInline]


@admin.register(OidcIdentity)
class OidcIdentityAdmin(admin.ModelAdmin):
    """Here an account that is there already is connected with the provider."""

    list_display = ["user", "issuer", "subject"]
    autocomplete_fields = ["user"]


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):
    """Tokens can be seen and revoked here, made only by their owners."""

    list_display = ["name", "user", "hint", "scope", "expires_at", "created_at", "used_on"]
    exclude = ["digest", "password_mark"]
    readonly_fields = ["user", "name", "hint", "scope", "expires_at", "created_at", "used_on"]

    def has_add_permission(self, request) -> bool:  # type: ignore[no-untyped-def]
        return False

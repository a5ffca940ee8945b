"""A person's authenticator app and recovery codes; django-otp checks, throttles and uses codes up."""

from django.contrib.auth.models import User
from django.db import transaction
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action, only_team

NUM_RECOVERY_CODES = 10
APP_CODE_DIGITS = 6


def is_on(user: User) -> bool:
    """True when a sign-in with the password needs a code."""
    return TOTPDevice.objects.filter(user=user, confirmed=True).exists()


@transaction.atomic
def uses_code(user: User, code: str) -> bool:
    """True when `code` is the app's, or a recovery code, which is then used up. Each code counts once."""
    model = TOTPDevice if len(code) == APP_CODE_DIGITS else StaticDevice
    device = model.objects.select_for_update().filter(user=user, confirmed=True).first()
    return device is not None and device.verify_token(code)


def app_to_confirm(user: User) -> TOTPDevice:
    """The secret that the person's app is to hold; not asked for before it is confirmed."""
    found = TOTPDevice.objects.filter(user=user, confirmed=False).first()
    return found or TOTPDevice.objects.create(user=user, name="app", confirmed=False)


@transaction.atomic
def turn_on(*, user: User, code: str) -> list[str] | None:
    """Ask for codes from now on, when `code` is the app's; the recovery codes, or None."""
    app = TOTPDevice.objects.select_for_update().filter(user=user, confirmed=False).first()
    if app is None or is_on(user) or not app.verify_token(code):
        return None
    TOTPDevice.objects.filter(pk=app.pk).update(confirmed=True)
    recovery = StaticDevice.objects.create(user=user, name="recovery codes")
    codes = [StaticToken.random_token() for _ in range(NUM_RECOVERY_CODES)]
    StaticToken.objects.bulk_create(StaticToken(device=recovery, token=text) for text in codes)
    _log(user, "on")
    return codes


@transaction.atomic
def turn_off(*, user: User) -> None:
    """Ask for the password alone again."""
    TOTPDevice.objects.filter(user=user).delete()
    StaticDevice.objects.filter(user=user).delete()
    _log(user, "off")


def _log(user: User, state: str) -> None:
    name, team = user.get_username(), only_team(user)
    log_action(AuditAction.TWO_STEP_CHANGED, person=user, team=team, kind="person", object_id=name, to=state)

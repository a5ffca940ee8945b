"""The team's prices."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.experiments.models import MAX_CURRENCY, MAX_PRICE, PRICE_FIELDS
from webapp.experiments.queries.prices import prices_of
from webapp.experiments.services.prices import set_prices
from webapp.lib.request_values import BadValue, check_text, decimal_number


@require_http_methods(["GET", "POST"])
def prices(request: MemberRequest) -> HttpResponse:
    """A form with one price a line; admins of the team change them."""
    membership = member(request)
    may_change = Role(membership.role).includes(Role.ADMIN)
    stored = prices_of(membership.team)
    typed = {name: f"{getattr(stored, name):g}" for name in PRICE_FIELDS} | {"currency": stored.currency}
    errors: dict[str, str] = {}
    if request.method == "POST":
        member(request, Role.ADMIN)
        typed = {name: request.POST.get(name, "").strip() for name in typed}
        values, errors = _read(typed)
        if not errors:
            set_prices(team=membership.team, values=values, by=request.user)
            messages.success(request, "Prices saved; every cost is shown at them from now on.")
            return redirect("prices")
    ctx = {
        "currency": typed["currency"],
        "rows": [(name, label, typed[name], errors.get(name, "")) for name, label in PRICE_FIELDS.items()],
        "errors": errors,
        "may_change": may_change,
    }
    return render(request, "experiments/prices.html", ctx, status=422 if errors else 200)


def _read(typed: dict[str, str]) -> tuple[dict[str, float | str], dict[str, str]]:
    """(values to store, errors by field)"""
    values: dict[str, float | str] = {}
    errors: dict[str, str] = {}
    for name in PRICE_FIELDS:
        try:
            values[name] = decimal_number(typed[name] or "0", name, low=0, high=MAX_PRICE)
        except BadValue as error:
            errors[name] = error.problem
    currency = typed["currency"]
    try:
        check_text(currency, "currency")
        if not 1 <= len(currency) <= MAX_CURRENCY:
            raise BadValue("currency", f"one to {MAX_CURRENCY} characters, e.g. USD or €")
        values["currency"] = currency
    except BadValue as error:
        errors["currency"] = error.problem
    return values, errors

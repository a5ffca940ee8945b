"""The hidden field of forms that create."""

import uuid

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.accounts.services.sent_requests import FORM_TOKEN

register = template.Library()


@register.simple_tag
def form_token() -> SafeString:
    """A key of this rendering of the form, for a view with `once_per_form`."""
    return format_html('<input type="hidden" name="{}" value="{}">', FORM_TOKEN, uuid.uuid4().hex)

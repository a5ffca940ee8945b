"""E-mail by the installation's server, with the strip of screenshots in it."""

from email.mime.image import MIMEImage
from smtplib import SMTPException, SMTPResponseException

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.core.mail.backends.smtp import EmailBackend
from django.core.validators import validate_email
from django.template.loader import render_to_string

from training.outgoing.secret_store import SecretError, read_secret
from webapp.accounts.models import Team
from webapp.lib.request_values import BadValue
from webapp.notifications.channels.contract import Channel, Message, NotDelivered, Rule
from webapp.notifications.channels.targets import check_length, refuse_secret

PASSWORD = "email-password"
"""Name of the secret."""
TIMEOUT_S = 15
MAX_ADDRESSES = 10


class _Letter(EmailMultiAlternatives):
    """What is attached is shown in its text."""

    mixed_subtype = "related"


def send_mail(rule: Rule, message: Message) -> None:
    """One message to all addresses of the rule. Raises NotDelivered."""
    mail = _Letter(
        subject=" ".join(f"[Deskhand] {message.title}".split()),
        body=f"{message.text}\n\n{message.url}\n".lstrip(),
        from_email=settings.MAIL_SERVER.sender,
        to=[address.strip() for address in rule.target.split(",")],
        headers={"Message-ID": f"<{message.id}@deskhand>"},
        connection=_connection(),
    )
    html = render_to_string("notifications/channels/email/mail.html", {"message": message})
    mail.attach_alternative(html, "text/html")
    if message.picture:
        picture = MIMEImage(message.picture, "jpeg")
        picture.add_header("Content-ID", "<screens>")
        picture.add_header("Content-Disposition", "inline", filename="screens.jpg")
        mail.attach(picture)
    try:
        mail.send()
    except SMTPResponseException as error:
        raise NotDelivered(f"the mail server answered {error.smtp_code}") from error
    except (SMTPException, OSError) as error:
        raise NotDelivered(f"the mail server did not take it ({type(error).__name__})") from error


def _connection() -> EmailBackend:
    server = settings.MAIL_SERVER
    if not server.host:
        raise NotDelivered("no mail server: an administrator sets DESKHAND_EMAIL_URL", is_permanent=True)
    try:
        password = read_secret(PASSWORD, settings.SECRETS_DIR) if server.user else ""
    except SecretError as error:
        raise NotDelivered(str(error), is_permanent=True) from error
    return EmailBackend(
        host=server.host,
        port=server.port,
        username=server.user,
        password=password,
        use_tls=server.security == "starttls",
        use_ssl=server.security == "tls",
        timeout=TIMEOUT_S,
    )


def check_addresses(team: Team, target: str, secret: str) -> None:
    """Raises BadValue."""
    check_length(target)
    refuse_secret("email", secret)
    if not settings.MAIL_SERVER.host:
        raise BadValue("target", "no mail server: an administrator sets DESKHAND_EMAIL_URL")
    addresses = [address.strip() for address in target.split(",")]
    if len(addresses) > MAX_ADDRESSES:
        raise BadValue("target", f"at most {MAX_ADDRESSES} addresses")
    for address in addresses:
        try:
            validate_email(address)
        except ValidationError as error:
            raise BadValue("target", f"'{address[:80]}' is no e-mail address") from error


def hint() -> str:
    return "Addresses, with commas" if settings.MAIL_SERVER.host else "needs DESKHAND_EMAIL_URL"


EMAIL = Channel("E-mail", send_mail, check_addresses, hint)

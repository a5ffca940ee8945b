"""The one settings file: every knob of the installation is an environment variable read here.

Experiment knobs are not here: they are fields of `training.contracts.config`."""

import os
from collections import ChainMap
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from training.log_lines import LogFormat
from training.outgoing.remote_addresses import read_networks
from training.outgoing.secret_store import stored_secret
from webapp.lib.disk_room import Kept, LeastFree
from webapp.lib.environment_variables import (
    database_from_url,
    env_bool,
    env_choice,
    env_int,
    env_list,
    env_parsed,
    env_paths,
    env_positive,
    env_str,
    make_private,
)
from webapp.lib.host_links.joined_identity import read_identity
from webapp.lib.host_links.service_address import read_service_address
from webapp.lib.mail_server import MailServer
from webapp.lib.media.bucket_address import read_media_storage
from webapp.operations.error_reports import report_errors_to

BASE_DIR = Path(__file__).resolve().parent.parent

# --- where things are kept -------------------------------------------------------------------------
DATA_DIR = Path(env_str("DESKHAND_DATA_DIR", str(BASE_DIR / "var"))).resolve()  # all that is written
SECRETS_DIR = DATA_DIR / "secrets"
MEDIA_STORAGE = read_media_storage()
# Files of this process and of its children are its user's alone; the desk host sets its own mask.
os.umask(0o077)
make_private(DATA_DIR)
IMAGES_DIR = Path(env_str("DESKHAND_IMAGES_DIR", str(DATA_DIR / "images")))
SGLANG_PYTHON = env_str("DESKHAND_SGLANG_PYTHON", str(BASE_DIR / ".venv-sglang/bin/python"))
SGLANG_PATH = env_str("DESKHAND_SGLANG_PATH", "")
GPU_LAUNCHER = env_choice("DESKHAND_GPU_LAUNCHER", ("celery", "kubernetes", "slurm"))  # celery = they wait
SLURM_ARGUMENTS = env_str("DESKHAND_SLURM_ARGUMENTS")  # of sbatch, beside ours
KUBERNETES_TEMPLATE = env_str("DESKHAND_KUBERNETES_TEMPLATE", "deskhand/gpu-job")  # NAMESPACE/NAME
CPU_PLACES = env_int("DESKHAND_CPU_PLACES", 0)  # of a host without GPUs; 0 = one experiment a worker
STOP_GRACE_S = env_int("DESKHAND_STOP_GRACE_S", 8)  # for a trainer to save a checkpoint
RUN_DIR = DATA_DIR / "run"
LOG_DIR = DATA_DIR / "logs"
BEAT_FILE = env_str("DESKHAND_BEAT_FILE")  # touched at each heartbeat that was recorded
CHECKPOINT_ROOT = DATA_DIR / "checkpoints"
EXPERIMENTS_DIR = DATA_DIR / "experiments"  # of each: config, logs, weights and, as a rule, checkpoints
DESKHOST_SOCKET = Path(env_str("DESKHAND_DESKHOST_SOCKET", str(RUN_DIR / "deskhost.sock")))
DESKHOST_STATE_DIR = DATA_DIR / "deskhost"
SCREEN_HOST = env_str("DESKHAND_SCREEN_HOST", "")

# --- room on disks ---------------------------------------------------------------------------------
LEAST_FREE = {
    Kept.FRAMES: env_parsed("DESKHAND_FRAMES_LEAST_FREE", "1GB", LeastFree.read),
    Kept.DATABASE: env_parsed("DESKHAND_DATABASE_LEAST_FREE", "1GB", LeastFree.read),
    Kept.CHECKPOINTS: env_parsed("DESKHAND_CHECKPOINTS_LEAST_FREE", "1GB", LeastFree.read),
}
"""With less, new work waits (`webapp.lib.disk_room`)."""

# --- security --------------------------------------------------------------------------------------
DEBUG = env_bool("DESKHAND_DEBUG", False)
SECRET_KEY = env_str("DESKHAND_SECRET_KEY") or stored_secret(SECRETS_DIR / "django_secret_key")
ALLOWED_HOSTS = env_list("DESKHAND_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env_list("DESKHAND_TRUSTED_ORIGINS", [])
BEHIND_HTTPS = env_bool("DESKHAND_HTTPS", False)
"""Set when a proxy in front serves https: cookies are secure-only, http is redirected, with HSTS."""
SECURE_SSL_REDIRECT = BEHIND_HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz)$"]  # probes of this machine
SECURE_HSTS_SECONDS = 365 * 86_400 if BEHIND_HTTPS else 0
# Subdomains and the browsers' preload list are for the owner of the domain to decide.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BEHIND_HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_HTTPS else None
# The port is not part of a cookie's scope: a second instance on this host needs another name.
SESSION_COOKIE_NAME = env_str("DESKHAND_SESSION_COOKIE", "deskhand_session")
CSRF_FAILURE_VIEW = "webapp.lib.error_pages.csrf_failure"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        # Plotly and noVNC write styles, and bars carry their width as one.
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:", "blob:", *MEDIA_STORAGE.image_sources],
        "font-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

# --- servers that other hosts reach -----------------------------------------------------------------
POLICY_SERVER = read_service_address(
    env_str("DESKHAND_POLICY_ADDRESS"), env_str("DESKHAND_POLICY_ADDRESS_LISTEN"), "DESKHAND_POLICY_ADDRESS"
)
"""Of a gpu host whose env workers run elsewhere; loopback = all on one machine."""
TRAIN_NETWORK = env_str("DESKHAND_TRAIN_NETWORK")  # a CIDR or an interface, for ranks of several hosts
HOSTS_SERVER = read_service_address(
    env_str("DESKHAND_HOSTS_ADDRESS"), env_str("DESKHAND_HOSTS_ADDRESS_LISTEN"), "DESKHAND_HOSTS_ADDRESS"
)
"""Where env hosts join over TLS, with a certificate of our own authority; loopback = nowhere."""
HOSTS_PORT = env_int("DESKHAND_HOSTS_PORT", 8743)
HOSTS_URL = env_str("DESKHAND_HOSTS_URL") or (
    "" if HOSTS_SERVER.is_local else f"https://{HOSTS_SERVER.url_host}:{HOSTS_PORT}"
)
HOST_GONE_S = env_positive("DESKHAND_HOST_GONE_S", 30)  # silence of a joined host while our port answered
HOST_AWAY_S = env_positive("DESKHAND_HOST_AWAY_S", 120)  # while it did not: a restart costs no trajectory
"""What env hosts connect to; set by hand where a proxy with a certificate of its own stands in front."""
JOINED = read_identity(DATA_DIR)
"""Set on a host that works for another installation: it has no database and no Redis."""
OF_HOSTS = ChainMap(os.environ, JOINED.environment if JOINED else {})  # its installation's where it has none
if not HOSTS_SERVER.is_local:
    ALLOWED_HOSTS = [*ALLOWED_HOSTS, HOSTS_SERVER.advertised]

# --- what operators' configs may touch on these machines ---------------------------------------------
REMOTE_NETWORKS = read_networks(env_list("DESKHAND_REMOTE_NETWORKS", [], OF_HOSTS))
"""Private networks that URLs of configs may lie in; public addresses always may."""
GATEWAY_VENDORS = env_list("DESKHAND_GATEWAY_VENDORS", [], OF_HOSTS)
OSWORLD_PYTHONS = env_list("DESKHAND_OSWORLD_PYTHONS", [], OF_HOSTS)
OSWORLD_DIRS = env_paths("DESKHAND_OSWORLD_DIRS", [DATA_DIR / "osworld"], OF_HOSTS)
OSWORLD_VARIABLES = env_list("DESKHAND_OSWORLD_VARIABLES", [], OF_HOSTS)
ALLOW_HOST_CODE = env_bool("DESKHAND_ALLOW_HOST_CODE", False, OF_HOSTS)
CHECKPOINT_DIRS = env_paths("DESKHAND_CHECKPOINT_DIRS", [CHECKPOINT_ROOT])
SGLANG_ARGUMENTS = env_list("DESKHAND_SGLANG_ARGUMENTS", [])
FLEET_TEAMS = env_list("DESKHAND_FLEET_TEAMS", [])
"""Teams whose operators may operate shared hosts; empty = the installation's first team."""

# --- applications ----------------------------------------------------------------------------------
INSTALLED_APPS = [
    "webapp.accounts.apps.AuditedAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    *("axes", "channels", "csp", "ninja"),
    *("django_otp", "django_otp.plugins.otp_totp", "django_otp.plugins.otp_static"),
    "webapp.accounts",
    "webapp.live",
    *("webapp.fleet", "webapp.experiments"),
    *("webapp.ui", "webapp.analysis", "webapp.sweeps", "webapp.launch", "webapp.experiment_pages"),
    "webapp.trajectories",
    "webapp.dispatcher",
    "webapp.worker_door",
    "webapp.replay",
    *("webapp.scanners", "webapp.tasks_library"),
    "webapp.attacks",
    "webapp.screens",
    "webapp.reports",
    "webapp.retention",
    "webapp.notifications",
    "webapp.samples",
    "webapp.trackers",
    "webapp.help",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "webapp.operations.probes.ProbeMiddleware",
    "csp.middleware.CSPMiddleware",
    "webapp.lib.unreadable_requests.EdgeMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "webapp.accounts.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "webapp.accounts.template_context.account",
            ],
        },
    },
]

# --- sign-in ---------------------------------------------------------------------------------------
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "webapp.accounts.member_backend.MemberBackend",
]
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = timedelta(minutes=10)
# Of one address: a person's own sign-in goes on while a stranger elsewhere guesses their password.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False
AXES_HTTP_RESPONSE_CODE = 429
AXES_LOCKOUT_CALLABLE = "webapp.accounts.views.locked_out"
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

OIDC_ISSUER = env_str("DESKHAND_OIDC_ISSUER", "")
"""URL of an OpenID Connect provider; "" = people sign in with passwords only."""
OIDC_CLIENT_ID = env_str("DESKHAND_OIDC_CLIENT_ID", "deskhand")
OIDC_NAME = env_str("DESKHAND_OIDC_NAME", "single sign-on")
OIDC_GROUPS_CLAIM = env_str("DESKHAND_OIDC_GROUPS_CLAIM", "groups")
OIDC_GROUPS = env_list("DESKHAND_OIDC_GROUPS", [])
"""GROUP=TEAM:ROLE, for the teams whose members the provider decides."""
OTP_TOTP_ISSUER = "Deskhand"
OTP_ADMIN_HIDE_SENSITIVE_DATA = True

AUDIT_DAYS = env_int("DESKHAND_AUDIT_DAYS", 365)
"""How long the audit log is kept; 0 = for ever."""

# --- database --------------------------------------------------------------------------------------
DATABASE_URL = env_str("DATABASE_URL", f"sqlite://{quote(str(DATA_DIR / 'deskhand.sqlite3'))}")
DATABASES = {
    "default": database_from_url(
        DATABASE_URL,
        pooled=env_bool("DESKHAND_DB_POOL", True),
        most=env_positive("DESKHAND_DB_CONNECTIONS", 16),
        keeps=env_bool("DESKHAND_DB_KEEP", False),
    )
}
if JOINED:
    DATABASES = {"default": {"ENGINE": "django.db.backends.dummy"}}

# --- Redis: job broker and channel layer -------------------------------------------------------------
REDIS_PORT = env_int("DESKHAND_REDIS_PORT", 8763)
REDIS_URL = env_str("REDIS_URL") or (
    f"redis://:{stored_secret(SECRETS_DIR / 'redis_password')}@127.0.0.1:{REDIS_PORT}/0"
)
CHANNEL_LAYERS: dict[str, Any] = {
    "default": {
        # The core layer keeps the oldest messages of a slow reader and drops the newest silently.
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "deskhand"},
    }
}

# --- static files and screenshots --------------------------------------------------------------------
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "webapp.lib.static_files.npm_assets.PackageFinder",
]
NODE_MODULES = Path(env_str("DESKHAND_NODE_MODULES", str(BASE_DIR / "node_modules")))
MEDIA_ROOT = DATA_DIR / "media"
STORAGES = {
    **MEDIA_STORAGE.django_storages,
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}

# --- time, messages ------------------------------------------------------------------------
TIME_ZONE = "UTC"
USE_I18N = False
MAIL_SERVER = env_parsed("DESKHAND_EMAIL_URL", "", MailServer.read)
LOG_FORMAT = env_parsed("DESKHAND_LOG_FORMAT", LogFormat.TEXT, LogFormat.read)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        LogFormat.TEXT: {"format": "{asctime} {levelname} {name}: {message}", "style": "{"},
        LogFormat.JSON: {"()": "training.log_lines.JsonLines"},
    },
    "filters": {"refusals": {"()": "webapp.lib.refusal_lines.RefusalLines"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "loggers": {
        "django.request": {"filters": ["refusals"]},
        **dict.fromkeys(("httpx", "axes"), {"level": "WARNING"}),  # they would name every request
        "uvicorn": {"level": "INFO"} if LOG_FORMAT is LogFormat.TEXT else {"handlers": [], "propagate": True},
    },
    "root": {"handlers": ["console"], "level": env_str("DESKHAND_LOG_LEVEL", "INFO")},
}

if dsn := env_str("DESKHAND_SENTRY_DSN"):
    report_errors_to(dsn)

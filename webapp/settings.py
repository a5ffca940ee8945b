"""The one settings file: every knob of the installation is an environment variable read here.

Experiment knobs are not here: they are fields of `training.contracts.config`.
"""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from training.contracts.secret_store import stored_secret
from webapp.lib.environment_variables import (
    database_from_url,
    env_bool,
    env_int,
    env_list,
    env_str,
)

BASE_DIR = Path(__file__).resolve().parent.parent

# --- where things are kept -------------------------------------------------------------------------
DATA_DIR = Path(env_str("DESKHAND_DATA_DIR", str(BASE_DIR / "var"))).resolve()
"""Everything written at run time; a second data folder is a second, independent installation."""
SECRETS_DIR = DATA_DIR / "secrets"
IMAGES_DIR = Path(env_str("DESKHAND_IMAGES_DIR", str(DATA_DIR / "images")))
SGLANG_PYTHON = env_str("DESKHAND_SGLANG_PYTHON", str(BASE_DIR / ".venv-sglang/bin/python"))
SGLANG_PATH = env_str("DESKHAND_SGLANG_PATH", "")
RUN_DIR = DATA_DIR / "run"
LOG_DIR = DATA_DIR / "logs"
CHECKPOINT_ROOT = DATA_DIR / "checkpoints"
DESKHOST_SOCKET = Path(env_str("DESKHAND_DESKHOST_SOCKET", str(RUN_DIR / "deskhost.sock")))
DESKHOST_STATE_DIR = DATA_DIR / "deskhost"
SCREEN_HOST = env_str("DESKHAND_SCREEN_HOST", "")

# --- security --------------------------------------------------------------------------------------
DEBUG = env_bool("DESKHAND_DEBUG", False)
SECRET_KEY = env_str("DESKHAND_SECRET_KEY") or stored_secret(SECRETS_DIR / "django_secret_key")
ALLOWED_HOSTS = env_list("DESKHAND_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env_list("DESKHAND_TRUSTED_ORIGINS", [])
BEHIND_HTTPS = env_bool("DESKHAND_HTTPS", False)
"""Set when a proxy in front serves https: cookies become secure-only."""
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BEHIND_HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_HTTPS else None
# The port is not part of a cookie's scope: a second instance on this host needs another name.
SESSION_COOKIE_NAME = env_str("DESKHAND_SESSION_COOKIE", "deskhand_session")
X_FRAME_OPTIONS = "DENY"

# --- applications ----------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "ninja",
    "webapp.accounts",
    "webapp.live",
    "webapp.fleet",
    "webapp.experiments",
    "webapp.trajectories",
    "webapp.dispatcher",
    "webapp.replay",
    "webapp.screens",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "webapp.lib.static_files_middleware.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "webapp.accounts.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
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
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# --- database --------------------------------------------------------------------------------------
DATABASE_URL = env_str("DATABASE_URL", f"sqlite://{quote(str(DATA_DIR / 'deskhand.sqlite3'))}")
DATABASES = {"default": database_from_url(DATABASE_URL, pooled=env_bool("DESKHAND_DB_POOL", True))}

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
    "webapp.lib.npm_assets.PackageFinder",
]
NODE_MODULES = Path(env_str("DESKHAND_NODE_MODULES", str(BASE_DIR / "node_modules")))
MEDIA_URL = "/media/"
MEDIA_ROOT = DATA_DIR / "media"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}

# --- language, time, messages ------------------------------------------------------------------------
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {"httpx": {"level": "WARNING"}},  # it would name every request
    "root": {"handlers": ["console"], "level": env_str("DESKHAND_LOG_LEVEL", "INFO")},
}

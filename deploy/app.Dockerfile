# Web process, dispatcher, desk host and env workers. Build from the repository's root:
#   docker build -f deploy/app.Dockerfile --target web .
ARG PYTHON=3.11-slim-bookworm
ARG NODE=22-bookworm-slim

FROM node:${NODE} AS assets
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund --ignore-scripts

FROM python:${PYTHON} AS help
WORKDIR /app
COPY requirements/hashed/docs.txt requirements/
RUN pip install --no-cache-dir --require-hashes --no-deps -r requirements/docs.txt
COPY README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md ./
COPY deploy deploy
COPY docs docs
RUN rm -rf docs/site && python -m sphinx -q -b json -c docs -d /tmp/doctrees . docs/site

FROM python:${PYTHON} AS web
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 DESKHAND_DATA_DIR=/data DJANGO_SETTINGS_MODULE=webapp.settings
WORKDIR /app
COPY requirements/hashed/core.txt requirements/hashed/s3.txt requirements/hashed/sentry.txt \
     requirements/hashed/kubernetes.txt requirements/
RUN pip install --require-hashes --no-deps -r requirements/core.txt -r requirements/s3.txt -r requirements/sentry.txt \
    -r requirements/kubernetes.txt
COPY --from=assets /app/node_modules node_modules
COPY --from=help /app/docs/site docs/site
COPY manage.py ./
COPY webapp webapp
COPY workers workers
COPY training training
COPY templates templates
COPY static static
RUN useradd --uid 1000 --create-home deskhand && install -d -o deskhand -g deskhand /data
USER deskhand
VOLUME /data
EXPOSE 8700
CMD ["uvicorn", "webapp.asgi:application", "--host", "0.0.0.0", "--port", "8700", "--lifespan", "off", \
     "--no-access-log", "--timeout-graceful-shutdown", "2", "--ws-per-message-deflate", "false"]

# The programs of the desktops on top; bubblewrap makes its namespaces as this user.
FROM web AS env-worker
USER root
COPY requirements/system.txt requirements/
RUN apt-get update \
 && grep -v '^#' requirements/system.txt | xargs apt-get install -y --no-install-recommends \
 && rm -rf /var/lib/apt/lists/*
USER deskhand
CMD ["celery", "-q", "-A", "workers.app", "worker", "-Q", "env", "-n", "env@%h", "--pool=threads", "--concurrency=8", \
     "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"]

# Virtual machines (QEMU) and OSWorld's own environment on top; deploy/machines.yml uses it.
FROM env-worker AS env-worker-machines
ARG OSWORLD_LEVEL=lite
USER root
RUN apt-get update \
 && apt-get install -y --no-install-recommends qemu-system-x86 qemu-utils \
 && rm -rf /var/lib/apt/lists/*
COPY requirements requirements
COPY scripts scripts
RUN python scripts/setup_osworld.py "${OSWORLD_LEVEL}"
ENV DESKHAND_OSWORLD_PYTHONS=/app/.venv-osworld/bin/python
USER deskhand

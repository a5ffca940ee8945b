# Web process, dispatcher, desk host and env workers. Build from the repository's root:
#   docker build -f deploy/app.Dockerfile --target web .
# PIP_INDEX_URL and NPM_CONFIG_REGISTRY name mirrors; empty ones are the public registries.
ARG PYTHON=3.11-slim-bookworm
ARG NODE=22-bookworm-slim
ARG POSTGRES=16-bookworm

FROM node:${NODE} AS assets
ARG NPM_CONFIG_REGISTRY=
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund --ignore-scripts

FROM python:${PYTHON} AS help
ARG PIP_INDEX_URL=
WORKDIR /app
COPY requirements/hashed/docs.txt requirements/
RUN pip install --no-cache-dir --require-hashes --no-deps -r requirements/docs.txt
COPY README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md ./
COPY deploy deploy
COPY docs docs
RUN rm -rf docs/site && python -m sphinx -q -b json -c docs -d /tmp/doctrees . docs/site

# `manage.py backup` runs the client of the server's own version: an older one refuses.
FROM postgres:${POSTGRES} AS database
USER root
RUN mkdir -p /client/bin /client/lib/pgsql && cd /usr/lib/postgresql/*/bin \
 && cp pg_dump pg_restore /client/lib/pgsql \
 && ldd pg_dump pg_restore | awk '$3 ~ /^\// && $1 !~ /^lib(c|m|resolv)\.so/ {print $3}' | sort -u \
    | xargs cp -t /client/lib/pgsql \
 && for name in pg_dump pg_restore; do \
      echo '#!/bin/sh' > /client/bin/$name \
      && echo "LD_LIBRARY_PATH=/usr/local/lib/pgsql exec /usr/local/lib/pgsql/$name \"\$@\"" >> /client/bin/$name \
      && chmod 755 /client/bin/$name; done

FROM python:${PYTHON} AS packages
ARG PIP_INDEX_URL=
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 DESKHAND_DATA_DIR=/data DJANGO_SETTINGS_MODULE=webapp.settings
WORKDIR /app
COPY requirements/hashed/core.txt requirements/hashed/s3.txt requirements/hashed/sentry.txt \
     requirements/hashed/kubernetes.txt requirements/
RUN pip install --require-hashes --no-deps -r requirements/core.txt -r requirements/s3.txt -r requirements/sentry.txt \
    -r requirements/kubernetes.txt
RUN useradd --uid 1000 --create-home deskhand && install -d -o deskhand -g deskhand /data

FROM packages AS web
COPY --from=database /client /usr/local
COPY --from=assets /app/node_modules node_modules
COPY --from=help /app/docs/site docs/site
COPY manage.py ./
COPY webapp webapp
COPY workers workers
COPY training training
COPY templates templates
COPY static static
USER deskhand
VOLUME /data
EXPOSE 8700
CMD ["uvicorn", "webapp.asgi:application", "--host", "0.0.0.0", "--port", "8700", "--lifespan", "off", \
     "--no-access-log", "--timeout-graceful-shutdown", "2", "--ws-per-message-deflate", "false"]

# The programs of the desktops; below our own files, so that a change of those does not install them anew.
FROM packages AS programs
COPY requirements/system.txt requirements/
RUN apt-get update \
 && grep -v '^#' requirements/system.txt | xargs apt-get install -y --no-install-recommends \
 && rm -rf /var/lib/apt/lists/*

# bubblewrap makes its namespaces as this user.
FROM programs AS env-worker
COPY --from=web /app /app
USER deskhand
VOLUME /data
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

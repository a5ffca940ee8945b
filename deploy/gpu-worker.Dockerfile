# The trainer and the policy server. TORCH_INDEX: leave it for CUDA, or use
# https://download.pytorch.org/whl/cpu for a machine without a GPU.
ARG PYTHON=3.11-slim-bookworm
FROM python:${PYTHON} AS trainer
ARG TORCH_INDEX=
ARG PIP_INDEX_URL=
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 DESKHAND_DATA_DIR=/data DJANGO_SETTINGS_MODULE=webapp.settings
WORKDIR /app
# Triton compiles a small program of its own at the first use of a kernel.
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
COPY requirements/core.txt requirements/training.txt requirements/base.txt requirements/
COPY requirements/hashed/base.txt requirements/hashed/s3.txt requirements/hashed/sentry.txt \
     requirements/hashed/torch-cuda.txt requirements/hashed/
RUN pip install --require-hashes --no-deps -r requirements/hashed/base.txt -r requirements/hashed/s3.txt \
    -r requirements/hashed/sentry.txt
RUN if [ -n "${TORCH_INDEX}" ]; then pip install --extra-index-url "${TORCH_INDEX}" -r requirements/base.txt; \
    else pip install --require-hashes --no-deps -r requirements/hashed/torch-cuda.txt; fi
COPY manage.py ./
COPY webapp webapp
COPY workers workers
COPY training training
RUN useradd --uid 1000 --create-home deskhand && install -d -o deskhand -g deskhand /data
USER deskhand
VOLUME /data
CMD ["celery", "-q", "-A", "workers.app", "worker", "-Q", "gpu", "-n", "gpu@%h", "--pool=solo", \
     "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"]

# SGLang's own environment beside it (about 10 GB); deploy/gpu.yml uses it.
FROM trainer AS sglang
USER root
COPY requirements requirements
COPY scripts scripts
RUN python scripts/setup_sglang.py --without-gpu
USER deskhand

# syntax=docker/dockerfile:1
# The worker on NVIDIA GPUs. Build from the repository's root:
#   docker build -f docker/inference-cuda.Dockerfile -t darkroom-inference-cuda .
FROM node:24.21-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages/client/package.json packages/client/
COPY packages/diffusion/package.json packages/diffusion/
RUN npm ci --no-audit --no-fund
COPY .swcrc tsconfig.json openapi.json ./
COPY scripts scripts
COPY packages packages
COPY libs libs
COPY apps apps
COPY docs docs
COPY docker docker
COPY CHANGELOG.md SECURITY.md ./
RUN node scripts/build.mjs

FROM node:24.21-bookworm-slim AS modules
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages/client/package.json packages/client/
COPY packages/diffusion/package.json packages/diffusion/
RUN npm ci --omit=dev --no-audit --no-fund
# The package's own script, which a normal installation skips: it downloads the CUDA provider, several hundred megabytes.
RUN ONNXRUNTIME_NODE_INSTALL=cuda12 node node_modules/onnxruntime-node/script/install.js
COPY scripts/slim-modules.mjs scripts/
RUN node scripts/slim-modules.mjs inference

# The provider needs CUDA 12 and cuDNN 9.
FROM nvidia/cuda:12.8.1-cudnn-runtime-ubuntu22.04
# It passes signals on from the first moment and ends the processes that others leave.
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists /var/cache/apt
# The same user id as in the other images, because they share the data.
RUN useradd --uid 1000 --create-home node && install -d -o 1000 -g 1000 /data /app/models
# No program in here may become root.
RUN find / -xdev -perm /6000 -type f -exec chmod a-s {} +
COPY --from=build /usr/local/bin/node /usr/local/bin/
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    INFERENCE_HEALTH_PORT=9100 \
    DEVICE=auto \
    DATA_DIR=/data \
    MODELS_DIR=/app/models
WORKDIR /app
COPY package.json openapi.json LICENSE ./
COPY --from=modules /app/node_modules node_modules
COPY --chown=1000:1000 models/shapes models/shapes
COPY --from=build /app/dist dist
USER 1000
VOLUME /data
EXPOSE 9100
ARG VERSION=unknown
ARG REVISION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="Darkroom inference" \
      org.opencontainers.image.description="Self-hosted text-to-image service: the worker that draws" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.source="$SOURCE"
# Docker itself only marks a hanging container as unhealthy. So the check kills a hanging process, and with a restart policy, as in
# docker/compose.yaml, the container restarts. A container whose database is away counts as healthy, because a restart would not help;
# /health/ready says whether it can serve.
HEALTHCHECK --interval=5s --timeout=20s --start-period=60s \
  CMD ["node", "dist/apps/cli/src/health-check.js", "dist/apps/inference/src/main.js", "INFERENCE_HEALTH_PORT"]
ENTRYPOINT ["tini", "--"]
CMD ["node", "--enable-source-maps", "dist/apps/inference/src/main.js"]

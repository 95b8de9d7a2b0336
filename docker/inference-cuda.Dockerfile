# syntax=docker/dockerfile:1
# The worker on NVIDIA GPUs. Build from the repository's root:
#   docker build -f docker/inference-cuda.Dockerfile -t darkroom-inference-cuda .
FROM node:24.21-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages packages
RUN npm ci --no-audit --no-fund
COPY .swcrc openapi.json ./
COPY scripts scripts
COPY libs libs
COPY apps apps
COPY docs docs
RUN node scripts/build.mjs && npm prune --omit=dev --no-audit --no-fund
# The package's own script, which a normal installation skips: it downloads the CUDA provider, several hundred megabytes.
RUN ONNXRUNTIME_NODE_INSTALL=cuda12 node node_modules/onnxruntime-node/script/install.js

# The provider needs CUDA 12 and cuDNN 9.
FROM nvidia/cuda:12.8.1-cudnn-runtime-ubuntu22.04
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    INFERENCE_HEALTH_PORT=9100 \
    DEVICE=auto \
    DATA_DIR=/data \
    MODELS_DIR=/app/models
WORKDIR /app
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/packages packages
COPY --from=build /app/dist dist
COPY models/shapes models/shapes
# The same user id as in the other images, because they share the data.
RUN useradd --uid 1000 --create-home node && install -d -o node -g node /data
USER node
VOLUME /data
EXPOSE 9100
# Docker itself only marks a hanging container as unhealthy. So the check kills a hanging process, and with --init and a restart policy,
# as in docker/compose.yaml, the container restarts. A container whose database is away counts as healthy, because a restart would not
# help; /health/ready says whether it can serve.
HEALTHCHECK --interval=5s --timeout=20s --start-period=60s \
  CMD ["node", "dist/apps/cli/src/health-check.js", "dist/apps/inference/src/main.js", "INFERENCE_HEALTH_PORT"]
CMD ["node", "--enable-source-maps", "dist/apps/inference/src/main.js"]

# syntax=docker/dockerfile:1
# Build from the repository's root: docker build -f docker/api.Dockerfile -t darkroom-api .
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

FROM node:24.21-bookworm-slim
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=3000 \
    DATA_DIR=/data \
    MODELS_DIR=/app/models
WORKDIR /app
COPY --from=build /app/package.json /app/openapi.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/packages packages
COPY --from=build /app/dist dist
COPY models/shapes models/shapes
RUN install -d -o node -g node /data
USER node
VOLUME /data
EXPOSE 3000
# Docker itself only marks a hanging container as unhealthy. So the check kills a hanging process, and with --init and a restart policy,
# as in docker/compose.yaml, the container restarts. A container whose database is away counts as healthy, because a restart would not
# help; /health/ready says whether it can serve.
HEALTHCHECK --interval=5s --timeout=20s --start-period=30s \
  CMD ["node", "dist/apps/cli/src/health-check.js", "dist/apps/api/src/main.js", "PORT"]
CMD ["node", "--enable-source-maps", "dist/apps/api/src/main.js"]

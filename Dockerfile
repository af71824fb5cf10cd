# Builds with the compiler and runs without it, as a user that cannot write to the image. The binding of uWebSockets.js is
# prebuilt for glibc 2.27 or later: an image on musl (alpine) cannot load it.
ARG NODE=node:22.21.1-bookworm-slim

FROM ${NODE} AS dependencies
WORKDIR /spindle
COPY package.json package-lock.json .npmrc ./
# Optional packages are the embedded Postgres, for a machine without one, and a faster way for piscina to pass messages.
# The binding comes for every platform: this image does not need 90 MB of it.
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev --omit=optional --ignore-scripts && \
  find node_modules/uWebSockets.js/dist/bin -type f ! -name "uws_linux_*_$(node -p process.versions.modules).node" -delete

FROM ${NODE} AS build
WORKDIR /spindle
COPY package.json package-lock.json .npmrc ./
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY clients clients
COPY console console
COPY docs docs
COPY openapi openapi
COPY tools tools
COPY verifier verifier
COPY lua lua
COPY src src
COPY workers workers
RUN npm run build

FROM ${NODE}
WORKDIR /spindle
ENV NODE_ENV=production HOST=0.0.0.0 METRICS_HOST=0.0.0.0
COPY package.json package-lock.json ./
COPY --from=dependencies /spindle/node_modules node_modules
COPY lua lua
COPY src/postgres/migrations src/postgres/migrations
COPY --from=build /spindle/dist dist
# Of what is in this image, last: the service checks its own files before it deals.
RUN node dist/tools/manifest.js
# The command, for `docker compose exec worker spindle …`: npx would change the mode of its file, which belongs to root.
RUN ln -s /spindle/dist/src/cli/cli.js /usr/local/bin/spindle
# For POSITION_FILE: an empty volume takes the owner of the folder that it is mounted at.
RUN mkdir position && chown 1000:1000 position
USER node
EXPOSE 8080 9464
# Checks that the process lives. GET /readyz reports if it may serve; a restart would not help while a store is away.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.METRICS_PORT ?? 9464}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Without npm: the process itself must receive SIGTERM. It ends within 10 s.
STOPSIGNAL SIGTERM
CMD ["node", "dist/src/main.js"]

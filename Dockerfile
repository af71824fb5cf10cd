# Builds with the compiler. The final image has no compiler and runs as a user who cannot write to it. The
# bindings of uWebSockets.js are prebuilt for glibc, the one for Node 24 for glibc 2.38 or later, so an image on
# musl (alpine) or Debian 12 cannot load it.
ARG NODE=node:24.21.0-trixie-slim

FROM ${NODE} AS dependencies
WORKDIR /spindle
COPY package.json package-lock.json .npmrc ./
# The image omits optional packages: the embedded Postgres, and a package with which piscina passes messages
# faster. The second command leaves only the binding of uWebSockets.js that this image loads.
COPY tools/bindings.mjs tools/
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev --omit=optional --ignore-scripts && \
  node tools/bindings.mjs --required

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
# This step lists the files of the image, so it must follow all COPY steps. The service compares its files
# with this list before it deals.
RUN node dist/tools/manifest.js
# Installs the command for `docker compose exec worker spindle …`. npx does not work here, because it would
# change the mode of the command's file, which belongs to root.
RUN ln -s /spindle/dist/src/cli/cli.js /usr/local/bin/spindle
# Folder for POSITION_FILE. An empty volume takes the owner of the folder on which it is mounted.
RUN mkdir position && chown 1000:1000 position
USER node
EXPOSE 8080 9464
# Checks that the process is alive. GET /readyz reports whether it can serve. A restart would not help while a
# store is unavailable.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.METRICS_PORT ?? 9464}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# The process is started without npm, because it must receive SIGTERM itself. It stops within 10 s.
STOPSIGNAL SIGTERM
CMD ["node", "dist/src/main.js"]

# Builds with the compiler, runs without it, as an ordinary user.
FROM node:22-bookworm-slim AS build
WORKDIR /spindle
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN npm run build && npm prune --omit=dev

FROM node:22-bookworm-slim
WORKDIR /spindle
ENV NODE_ENV=production
COPY --from=build /spindle/node_modules node_modules
COPY --from=build /spindle/dist dist
COPY --from=build /spindle/lua lua
COPY --from=build /spindle/src/postgres/migrations src/postgres/migrations
COPY package.json ./
USER node
EXPOSE 8080 9464
CMD ["node", "dist/src/main.js"]

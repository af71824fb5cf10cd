#!/bin/sh
# `npm run build` creates dist. With a name, it creates only that part: typebox, types (of the clients) or
# openapi.
set -e

bundle() { esbuild "$@" --bundle --format=esm --platform=node --log-level=warning; }

# Bundles and runs a tool of the openapi folder, before anything is compiled.
tool() {
  bundle "openapi/$1.ts" --packages=external "--outfile=.cache/openapi/$1.js"
  node ".cache/openapi/$1.js"
}

typebox() {
  bundle index=typebox compile/index=typebox/compile system/index=typebox/system --splitting --outdir=dist/typebox
}

types() { tool types; }

openapi() {
  typebox
  tool write
}

all() {
  tsc -p tsconfig.build.json --noCheck
  chmod +x dist/src/cli/cli.js
  typebox
  node dist/tools/verifier.js
  types
  tsc -p clients/typescript --noCheck --outDir dist/client
  node dist/tools/docs/build.js
  node dist/tools/console.js
  node dist/tools/manifest.js
}

"${1:-all}"

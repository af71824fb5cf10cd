#!/bin/sh
# Runs before `npm start` builds again. Reports the files of the build that differ from the list of the last
# build. It never prevents the start.
if [ -f manifest.sha256 ] && [ -f dist/src/cli/cli.js ]; then node dist/src/cli/cli.js program check --quiet >&2; fi
true

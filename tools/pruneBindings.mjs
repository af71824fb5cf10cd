/**
 * Runs after `npm ci`. The uWebSockets.js package has bindings for all platforms and for Node versions that
 * this program does not support (133 MB). This tool keeps only the bindings of this platform for Node 20 (ABI
 * 115) and Node 22 (ABI 127), 14 MB.
 */
import { readdirSync, rmSync } from 'node:fs';

const FOLDER = new URL('../node_modules/uWebSockets.js/dist/bin/', import.meta.url);
const kept = [115, 127].map((abi) => `uws_${process.platform}_${process.arch}_${abi}.node`);
for (const name of readdirSync(FOLDER)) if (!kept.includes(name)) rmSync(new URL(name, FOLDER));

/**
 * After `npm ci`: the package of uWebSockets.js has a binding for every platform and for versions of Node that this program does not
 * run on, 133 MB. Those of this platform stay, 14 MB: for Node 20 (ABI 115) and 22 (ABI 127).
 */
import { readdirSync, rmSync } from 'node:fs';

const FOLDER = new URL('../node_modules/uWebSockets.js/dist/bin/', import.meta.url);
const kept = [115, 127].map((abi) => `uws_${process.platform}_${process.arch}_${abi}.node`);
for (const name of readdirSync(FOLDER)) if (!kept.includes(name)) rmSync(new URL(name, FOLDER));

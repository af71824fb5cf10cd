/** `npm run verifier`: puts the module that verifies proofs into dist as it is. `npm run build` runs it. */
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

const FILE = join('verifier', 'verify.mjs');

mkdirSync(join('dist', 'verifier'), { recursive: true });
copyFileSync(FILE, join('dist', FILE));

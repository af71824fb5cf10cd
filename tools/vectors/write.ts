/** `npm run vectors`: writes the published test vectors to docs/vectors. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { proofVectors } from './proof.js';

writeFileSync(join('docs', 'vectors', 'proof-v1.json'), `${JSON.stringify(proofVectors(), undefined, 1)}\n`);

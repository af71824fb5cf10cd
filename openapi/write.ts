/** `npm run openapi`: writes the files of the contract. Run it in the repository after a change of a route or schema. */
import { writeFileSync } from 'node:fs';
import { contractFiles } from './files.js';

for (const [path, text] of contractFiles()) {
  writeFileSync(path, text);
  process.stdout.write(`${path}\n`);
}

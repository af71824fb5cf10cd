/**
 * Command `npm run openapi`: writes the generated files of the API contract. Run it after a change of a route
 * or schema.
 */
import { writeFileSync } from 'node:fs';
import { contractFiles } from './files.js';

for (const [path, text] of contractFiles()) {
  writeFileSync(path, text);
  process.stdout.write(`${path}\n`);
}

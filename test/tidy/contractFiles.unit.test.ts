/** The files of the contract are those that the schemas and routes give. Needs no server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { contractFiles } from '../../openapi/files.js';

const ROOT = join(import.meta.dirname, '..', '..');

test('the OpenAPI files, the catalogue of the client, the operations of docs/errors.md and the tree of paths are what the schemas give: run `npm run openapi`', () => {
  const files = contractFiles();
  expect([...files.keys()].sort()).toEqual([
    'clients/typescript/src/errorCatalog.ts',
    'docs/errors.md',
    'openapi/operator.v1.json',
    'openapi/partner.v1.json',
    'openapi/play.v1.json',
    'src/api/index.ts',
  ]);
  for (const [path, text] of files) expect(readFileSync(join(ROOT, path), 'utf8'), path).toBe(text);
});

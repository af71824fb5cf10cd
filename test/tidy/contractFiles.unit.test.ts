/** The files of the contract are those that the schemas and routes give. Needs no server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { contractFiles } from '../../openapi/files.js';

const ROOT = join(import.meta.dirname, '..', '..');

test('the OpenAPI files, the collections and the types of the client are what the schemas give: run `npm run openapi`', async () => {
  const files = await contractFiles();
  expect([...files.keys()].sort()).toEqual([
    'clients/typescript/src/errorCatalog.ts',
    'clients/typescript/src/partner.v1.ts',
    'clients/typescript/src/play.v1.ts',
    'openapi/operator.v1.json',
    'openapi/operator.v1.postman_collection.json',
    'openapi/partner.v1.json',
    'openapi/partner.v1.postman_collection.json',
    'openapi/play.v1.json',
    'openapi/play.v1.postman_collection.json',
    'src/client/operator.v1.d.ts',
  ]);
  for (const [path, text] of files) expect(readFileSync(join(ROOT, path), 'utf8'), path).toBe(text);
});

/** Checks that the generated files of the contract match the schemas and routes. Needs no server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { contractFiles } from '../../openapi/files.js';
import { settings } from '../../src/api/partners/contract.js';

const ROOT = join(import.meta.dirname, '..', '..');

test('the generated OpenAPI files, error catalogue, columns of the archive and path tree match the sources: run `npm run openapi`', () => {
  const files = contractFiles();
  expect([...files.keys()].sort()).toEqual([
    'clients/typescript/src/errorCatalog.ts',
    'docs/archive.md',
    'docs/errors.md',
    'openapi/operator.v1.json',
    'openapi/partner.v1.json',
    'openapi/play.v1.json',
    'src/api/index.ts',
  ]);
  for (const [path, text] of files) expect(readFileSync(join(ROOT, path), 'utf8'), path).toBe(text);
});

test('docs/contract.md names each setting of a partner', () => {
  const text = readFileSync(join(ROOT, 'docs/contract.md'), 'utf8');
  const names = Object.keys(settings);
  expect(names.length).toBeGreaterThan(5);
  expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
});

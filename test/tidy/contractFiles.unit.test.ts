/** Checks that the generated files of the contract match the schemas and routes. Needs no server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { contractFiles } from '../../openapi/files.js';
import { SPIN_CSV_HEAD } from '../../src/api/contract/spinCsv.js';
import { settings } from '../../src/api/partners/contract.js';
import { SpinBody } from '../../src/api/spins/contract.js';

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

const PARTS = readFileSync(join(ROOT, 'docs/contract.md'), 'utf8').split(/^#{2,3} /m);
const SENT = Object.keys(SpinBody.properties);

/** By document: the members that it must name. */
test.each([
  ['docs/contract.md §8.1', PARTS.find((part) => part.startsWith('8.1 ')), SENT],
  ['docs/contract.md §11', PARTS.find((part) => part.startsWith('11. ')), SPIN_CSV_HEAD.trim().split(',')],
  ['docs/contract.md §15.1', PARTS.find((part) => part.startsWith('15.1 ')), Object.keys(settings)],
  [
    'clients/typescript/API_CHANGELOG.md',
    readFileSync(join(ROOT, 'clients/typescript/API_CHANGELOG.md'), 'utf8'),
    SENT.slice(SENT.indexOf('requestId') + 1),
  ],
])('%s names each member', (_, text, names) => {
  expect(names.filter((name) => !text!.includes(`\`${name}\``))).toEqual([]);
});

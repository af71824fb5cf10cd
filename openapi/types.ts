/**
 * `npm run types`: writes the types of the OpenAPI documents for the clients, where a document is newer than they are. The type check and
 * the client's package need them; a build does not, and git does not have them.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';

/** By document: partners' go into the package of the client, the operator's to the command. */
const TYPES = {
  'openapi/partner.v1.json': 'clients/typescript/src/partner.v1.ts',
  'openapi/operator.v1.json': 'src/api/client/operator.v1.d.ts',
  'openapi/play.v1.json': 'clients/typescript/src/play.v1.ts',
};

const changedMs = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

for (const [document, types] of Object.entries(TYPES)) {
  if (changedMs(types) > changedMs(document)) continue;
  const made = astToString(await openapiTS(readFileSync(document, 'utf8')));
  writeFileSync(types, COMMENT_HEADER + made);
}

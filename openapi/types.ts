/**
 * Command `npm run types`: generates the clients' types from the OpenAPI documents that are newer than the
 * types. The type check and the client's package need these types. A build does not need them, and they are
 * not in git.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';

/**
 * File of the generated types for each OpenAPI document. The client package contains the types for partners.
 */
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

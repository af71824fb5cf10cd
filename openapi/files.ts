/** What the files of the contract must contain: the OpenAPI documents, and the error catalogue as the client has it. */

import { openApiDocuments } from '../src/contract/documents.js';
import { ERRORS } from '../src/domain/errors.js';

/** The name that the service has where none is set (`BRAND`). */
const BRAND = 'Spindle';

const WIDTH_MAX = 110;

const CATALOG = 'clients/typescript/src/errorCatalog.ts';

/** JSON with the innermost objects and arrays on one line where they fit. */
function formatted(value: object): string {
  // A string of JSON has no line breaks: what changes is white space between tokens.
  const text = JSON.stringify(value, null, 2).replace(/[{[][^{}[\]]*[\]}]/g, (part) => {
    const line = part.replace(/\s*\n\s*/g, ' ');
    return line.length <= WIDTH_MAX ? line : part;
  });
  return `${text}\n`;
}

/** The catalogue as the client has it. */
function catalogText(): string {
  const entries = Object.values(ERRORS).map(
    ({ code, status, retry, message }) =>
      `  '${code}': { status: ${status}, retry: '${retry}', message: ${JSON.stringify(message)} },\n`,
  );
  return `/** Made of the service's error catalogue by \`npm run openapi\`. */

/** What a caller should do next: nothing, wait, repeat with the same requestId, or repeat with a new requestId. */
export type RetryClass = 'never' | 'later' | 'same-request-id' | 'new-request-id';

export const ERROR_CATALOG = {
${entries.join('')}} as const satisfies Record<string, { status: number; retry: RetryClass; message: string }>;

export type ErrorCode = keyof typeof ERROR_CATALOG;
`;
}

/** The files' texts, by their paths in the repository. The same sources give the same texts. */
export function contractFiles(): ReadonlyMap<string, string> {
  const files = new Map<string, string>([[CATALOG, catalogText()]]);
  for (const [scope, document] of Object.entries(openApiDocuments(BRAND)))
    files.set(`openapi/${scope}.v1.json`, formatted(document));
  return files;
}

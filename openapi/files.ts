/** What the files of the contract must contain: the OpenAPI documents, and the TypeScript types made of them. */
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import { openApiDocuments } from '../src/http/routes.js';

/** The name that the service has where none is set (`BRAND`). */
const BRAND = 'Spindle';

const WIDTH_MAX = 110;

/** JSON with the innermost objects and arrays on one line where they fit. */
function formatted(value: object): string {
  // A string of JSON has no line breaks: what changes is white space between tokens.
  const text = JSON.stringify(value, null, 2).replace(/[{[][^{}[\]]*[\]}]/g, (part) => {
    const line = part.replace(/\s*\n\s*/g, ' ');
    return line.length <= WIDTH_MAX ? line : part;
  });
  return `${text}\n`;
}

/** The files' texts, by their paths in the repository. The same sources give the same texts. */
export async function contractFiles(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const [scope, document] of Object.entries(openApiDocuments(BRAND))) {
    const text = formatted(document);
    files.set(`openapi/${scope}.v1.json`, text);
    files.set(`src/client/${scope}.v1.d.ts`, COMMENT_HEADER + astToString(await openapiTS(text)));
  }
  return files;
}

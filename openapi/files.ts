/**
 * Generates the files of the API contract: the OpenAPI documents, the client's error catalogue, the
 * operations of each error, the ledger's columns in the archive, and the tree of all paths.
 */
import { readFileSync } from 'node:fs';
import { BASES, type Scope } from '../src/api/contract/apis.js';
import { errorsOf, openApiDocuments } from '../src/api/contract/documents.js';
import { CONTRACTS, ENDPOINTS, isEndpoint } from '../src/api/index.js';
import { ERRORS, type ErrorEntry, happenedAt } from '../src/domain/errors.js';
import { LEDGER_MEMBERS } from '../src/domain/ledgerColumns.js';

/** Default name of the service, without the setting `BRAND`. */
const BRAND = 'Spindle';

const WIDTH_MAX = 110;

const CATALOG = 'clients/typescript/src/errorCatalog.ts';
const ERRORS_PAGE = 'docs/errors.md';
const SCOPES = Object.keys(BASES) as Scope[];

/** Formats JSON with the innermost objects and arrays on one line if they fit. */
function formatted(value: object): string {
  // JSON strings contain no line breaks, so only white space between tokens changes.
  const text = JSON.stringify(value, null, 2).replace(/[{[][^{}[\]]*[\]}]/g, (part) => {
    const line = part.replace(/\s*\n\s*/g, ' ');
    return line.length <= WIDTH_MAX ? line : part;
  });
  return `${text}\n`;
}

/** Renders the error catalogue for the client package. */
function catalogText(): string {
  const entries = Object.values(ERRORS).map(({ code, status, retry, happened, message }) => {
    const own = happened === happenedAt(status) ? '' : ` happened: '${happened}',`;
    return `  '${code}': { status: ${status}, retry: '${retry}',${own} message: ${JSON.stringify(message)} },\n`;
  });
  return `/** Made of the service's error catalogue by \`npm run openapi\`. */

/** Retry advice of an error: never, later, with the same requestId, or with a new requestId. */
export type RetryClass = 'never' | 'later' | 'same-request-id' | 'new-request-id';
/**
 * What an error says about a spin or deal: it did not happen, its result is not known yet, it did not happen
 * if it had a requestId (the client sends one), or its requestId belongs to another request.
 */
export type Happened = 'no' | 'unknown' | 'no-with-request-id' | 'other-request';

/** \`happened\` is left out where the status tells it: \`unknown\` for 5xx, otherwise \`no\`. */
export const ERROR_CATALOG = {
${entries.join('')}} as const satisfies Record<string, { status: number; retry: RetryClass; happened?: Happened; message: string }>;

export type ErrorCode = keyof typeof ERROR_CATALOG;
`;
}

/** Names the operations of a scope that can return an error, in the form `all … but` if that is shorter. */
function operationsWith(entry: ErrorEntry, scope: Scope): string[] {
  const endpoints = ENDPOINTS.filter((each) => each.scope === scope);
  const namesOf = (answers: boolean): string[] =>
    endpoints
      .filter((endpoint) => errorsOf(endpoint).includes(entry) === answers)
      .map(({ operationId }) => operationId)
      .sort()
      .map((name) => `\`${name}\``);
  const [answering, others] = [namesOf(true), namesOf(false)];
  if (answering.length === 0) return [];
  if (answering.length <= others.length) return [answering.join(', ')];
  return [others.length === 0 ? `all ${scope}` : `all ${scope} but ${others.join(', ')}`];
}

/** Renders docs/errors.md with the operations of each code in the last column. */
const errorsPage = (): string =>
  Object.values(ERRORS).reduce<string>(
    (page, entry) => {
      const operations = SCOPES.flatMap((scope) => operationsWith(entry, scope)).join('; ') || '–';
      return page.replace(
        new RegExp(`^(\\| ${entry.code} \\|.*\\|)[^|]*\\|$`, 'm'),
        (_, row) => `${row} ${operations} |`,
      );
    },
    readFileSync(ERRORS_PAGE, 'utf8'),
  );

const ARCHIVE_PAGE = 'docs/archive.md';

const archivePage = (): string =>
  readFileSync(ARCHIVE_PAGE, 'utf8').replace(
    /^(\| `ledger\.parquet` \|[^|]*\|)[^|]*\|$/m,
    (_, row) => `${row} ${LEDGER_MEMBERS.map(([, { name }]) => `\`${name}\``).join(', ')} |`,
  );

const INDEX = 'src/api/index.ts';

/** Column of the operations in the tree of paths. */
const INDENT = 34;

/** One path of an API, with its operations and the paths below it. */
class PathNode {
  readonly operations: string[] = [];
  readonly below = new Map<string, PathNode>();

  add(parts: readonly string[], operation: string): void {
    const [first, ...others] = parts;
    if (first === undefined) {
      this.operations.push(operation);
      return;
    }
    let node = this.below.get(first);
    if (node === undefined) {
      node = new PathNode();
      this.below.set(first, node);
    }
    node.add(others, operation);
  }

  /** Returns the lines of the paths below this one, in alphabetical order. */
  lines(depth = 1): string[] {
    return [...this.below]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([part, node]) => [
        `${'  '.repeat(depth)}/${part}`.padEnd(INDENT) +
          node.operations.sort().join(`,\n * ${' '.repeat(INDENT)}`),
        ...node.lines(depth + 1),
      ]);
  }
}

/** Renders all paths of all APIs as a tree, with method, operation and the folder of the resource. */
function pathTree(): string[] {
  return SCOPES.flatMap((scope) => {
    const root = new PathNode();
    for (const [resource, contract] of Object.entries(CONTRACTS))
      for (const endpoint of Object.values<unknown>(contract).filter(isEndpoint))
        if (endpoint.scope === scope)
          root.add(
            endpoint.path.split('/').slice(1),
            `${endpoint.method} ${endpoint.operationId} (${resource})`,
          );
    return [BASES[scope], ...root.lines()];
  });
}

/** Renders src/api/index.ts with the tree of all paths in its first comment. */
const indexText = (): string =>
  readFileSync(INDEX, 'utf8').replace(
    /( \* <paths>\n)[\s\S]*?( \* <\/paths>\n)/,
    (_, begin, end) =>
      begin +
      pathTree()
        .map((line) => ` * ${line}`.trimEnd())
        .join('\n') +
      `\n${end}`,
  );

/**
 * Returns the texts of all generated files, by their paths in the repository. The same sources give the same
 * texts.
 */
export function contractFiles(): ReadonlyMap<string, string> {
  const files = new Map<string, string>([
    [CATALOG, catalogText()],
    [ERRORS_PAGE, errorsPage()],
    [ARCHIVE_PAGE, archivePage()],
    [INDEX, indexText()],
  ]);
  for (const [scope, document] of Object.entries(openApiDocuments(BRAND)))
    files.set(`openapi/${scope}.v1.json`, formatted(document));
  return files;
}

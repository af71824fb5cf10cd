/**
 * Installs the client package from a running service as a partner would. TypeScript programs that use it are
 * checked under each way in which TypeScript resolves modules, and then spin. The samples and options of the
 * client's page are checked against the installed types.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { API_VERSION } from '../../src/api/contract/apis.js';
import { world } from '../setup/world.js';
import { docCode } from '../support/docBlocks.js';
import { ROOT } from '../support/root.js';
import { parSheet } from '../support/sheets.js';

const run = promisify(execFile);
const PACKAGE = `spindle-client-${API_VERSION}.tgz`;
/** Makes `require` refuse ES modules, as it does in Node.js before 20.19. */
const WITHOUT_REQUIRE_OF_MODULES = '--no-experimental-require-module';

const { service } = world({ CELLS: '1' });
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spindle-package-'));
  const answer = await fetch(`${service.base}/docs/client/${PACKAGE}`);
  await writeFile(join(folder, PACKAGE), Buffer.from(await answer.arrayBuffer()));
  await writeFile(join(folder, 'package.json'), '{"private":true}');
  const env = { PATH: process.env.PATH, HOME: folder, npm_config_cache: join(folder, 'cache') };
  const args = ['install', '--offline', '--no-audit', '--no-fund', `./${PACKAGE}`];
  await run('npm', args, { cwd: folder, env });
  for (const file of Object.values(FILES).flat()) {
    const text = { 'samples.mts': samplesProgram(), 'options.mts': optionsProgram() }[file] ?? PROGRAM;
    await writeFile(join(folder, file), text);
  }
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** Program of a partner. Its marked lines are errors, unless the types of the package were not found. */
const PROGRAM = `import * as client from '@spindle/client';
import { Spindle, SpindleError, type Spin } from '@spindle/client';
import { verifyWebhook, WebhookVerificationError, type SpindleEvent } from '@spindle/client/webhooks';

async function main(baseUrl: string, apiKey: string, gameId: number): Promise<void> {
  const spindle = new Spindle({ baseUrl, apiKey });
  const spin: Spin = await spindle.spin({ gameId, playerId: 'packed', wagerUsd: 0.25 });
  // @ts-expect-error
  spin.missing;
  const games = await spindle.read((api) => api.GET('/games'));
  // @ts-expect-error
  games.missing;
  const event: SpindleEvent | undefined = await verifyWebhook({ body: '', headers: {}, secret: '' }).catch(
    (error: unknown) => {
      if (error instanceof client.WebhookVerificationError) return undefined;
      throw error;
    },
  );
  // @ts-expect-error
  event?.missing;
  const refusal: unknown = await spindle.getSpin('missing').catch((error: unknown) => error);
  const isRefused: boolean = refusal instanceof SpindleError;
  const isSameClass: boolean = client.WebhookVerificationError === WebhookVerificationError;
  console.log(typeof spin.outcome.payoutUsd, event, isRefused, isSameClass);
}
const [baseUrl, apiKey, gameId] = process.argv.slice(2);
void main(baseUrl!, apiKey!, Number(gameId));
`;

const PAGE = 'clients/typescript/README.md';

/** Declares what the samples of the page take from the program of the partner. */
const SURROUNDINGS = `import type { IncomingMessage } from 'node:http';
declare const journal: { write(requestId: string): Promise<void> };
declare const queue: string[];
declare const lastEventId: string | undefined;
declare const request: IncomingMessage;
declare const body: string;
`;

const samplesProgram = (): string => `${SURROUNDINGS}${docCode(PAGE, 'ts').join('\n')}\n`;

/** Returns a program that compiles only if the tables of the page list all members of the types. */
function optionsProgram(): string {
  const page = readFileSync(join(ROOT, PAGE), 'utf8');
  const optionsOf = (table: string): string[] => {
    const [, rows = ''] = page.split(`\n| ${table} |`);
    const [lines = ''] = rows.split('\n\n');
    return [...lines.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name!);
  };
  const checkOf = (table: string, type: string): string =>
    `({ ${optionsOf(table)
      .map((name) => `${name}: true`)
      .join(', ')} }) satisfies Record<keyof ${type}, true>;`;
  return `import type { SpindleOptions, SpinOptions } from '@spindle/client';
import { verifyWebhook } from '@spindle/client/webhooks';
type Delivery = Parameters<typeof verifyWebhook>[0];
${checkOf('Option of `Spindle`', 'SpindleOptions')}
${checkOf('Option of `spin` and `blackjack.deal`', 'SpinOptions')}
${checkOf('Member of the argument of `verifyWebhook`', 'Delivery')}
`;
}

/** Parsed declarations, which the programs share. */
const parsed = new Map<string, ts.SourceFile>();
const HOST = ts.createCompilerHost({});
const parse = HOST.getSourceFile;
HOST.getSourceFile = (file, options, ...more) => {
  const format = typeof options === 'object' ? options.impliedNodeFormat : undefined;
  const key = `${file} ${format}`;
  const found = parsed.get(key) ?? parse(file, options, ...more);
  if (found !== undefined && file.endsWith('.d.ts')) parsed.set(key, found);
  return found;
};

/** Files in the folder of the partner, by how TypeScript resolves their modules. */
const FILES: Record<string, readonly string[]> = {
  node10: ['node10.cts'],
  node16: ['node16.cts', 'node16.mts'],
  nodenext: ['nodenext.cts', 'nodenext.mts', 'samples.mts', 'options.mts'],
  bundler: ['bundler.mts'],
};
const compilations = new Map<string, Map<string, string>>();

/** Returns the errors in a file and in the package, and emits the file. */
function errorsOf(file: string, module: string, moduleResolution: string): string {
  const found = compilations.get(moduleResolution) ?? compile(module, moduleResolution);
  compilations.set(moduleResolution, found);
  return found.get(file)!;
}

/**
 * Compiles all files with a way of resolving modules together. Returns the errors in the package and in each
 * file. Errors in the declarations of Node.js are not looked for, which would take most of the time.
 */
function compile(module: string, moduleResolution: string): Map<string, string> {
  const files = FILES[moduleResolution]!;
  const { options, errors } = ts.convertCompilerOptionsFromJson(
    {
      strict: true,
      target: 'es2022',
      ignoreDeprecations: '6.0',
      types: ['node'],
      typeRoots: [join(ROOT, 'node_modules', '@types')],
      module,
      moduleResolution,
    },
    folder,
  );
  const program = ts.createProgram(
    files.map((file) => join(folder, file)),
    options,
    HOST,
  );
  const textOf = (diagnostics: readonly ts.Diagnostic[]): string =>
    ts.formatDiagnostics(diagnostics, {
      getCanonicalFileName: (name) => name,
      getCurrentDirectory: () => folder,
      getNewLine: () => '\n',
    });
  const errorsIn = (sources: readonly ts.SourceFile[]): string =>
    textOf(
      sources.flatMap((source) => [
        ...program.getSyntacticDiagnostics(source),
        ...program.getSemanticDiagnostics(source),
      ]),
    );
  const ofPackage = program
    .getSourceFiles()
    .filter(({ fileName }) => fileName.startsWith(join(folder, 'node_modules')));
  const shared =
    textOf([...errors, ...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()]) +
    errorsIn(ofPackage);
  program.emit();
  return new Map(
    files.map((file) => [file, shared + errorsIn([program.getSourceFile(join(folder, file))!])]),
  );
}

test('the client package is served with its checksum and contains its documents', async () => {
  const sums = await (await fetch(`${service.base}/docs/client/SHA256SUMS`)).text();
  const answer = await fetch(`${service.base}/docs/client/${PACKAGE}`);
  const bytes = Buffer.from(await answer.arrayBuffer());
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/gzip']);
  expect(sums).toBe(`${createHash('sha256').update(bytes).digest('hex')}  ${PACKAGE}\n`);

  const inside = join(folder, 'node_modules', '@spindle', 'client');
  for (const page of ['README.md', 'API_CHANGELOG.md', 'PROVENANCE.md']) {
    const text = readFileSync(join(inside, page), 'utf8');
    for (const [, to] of text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)) readFileSync(join(inside, to!));
  }
  expect(readFileSync(join(inside, 'LICENSE'), 'utf8')).toContain('Apache License');
  expect(JSON.parse(readFileSync(join(inside, 'package.json'), 'utf8')).private).toBeUndefined();
});

test.each([
  ['node10', 'commonjs', 'node10.cts', 'require'],
  ['node16', 'node16', 'node16.cts', 'require'],
  ['node16', 'node16', 'node16.mts', 'import'],
  ['nodenext', 'nodenext', 'nodenext.cts', 'require'],
  ['nodenext', 'nodenext', 'nodenext.mts', 'import'],
  ['bundler', 'esnext', 'bundler.mts', 'import'],
])(
  'a program compiles with moduleResolution %s and module %s (%s) and spins by %s',
  async (moduleResolution, module, file, call) => {
    expect(errorsOf(file, module, moduleResolution)).toBe('');

    const compiled = join(folder, file.replace(/ts$/, 'js'));
    expect(readFileSync(compiled, 'utf8')).toMatch(call === 'require' ? /\brequire\(/ : /^import /m);
    const { key } = await service.newPartner();
    const gameId = await service.newGame(key, parSheet('classic-3-reel'));
    const { allowedNodeEnvironmentFlags: flags } = process;
    const args = [...(flags.has(WITHOUT_REQUIRE_OF_MODULES) ? [WITHOUT_REQUIRE_OF_MODULES] : []), compiled];
    const { stdout } = await run(process.execPath, [...args, service.base, key, String(gameId)], {
      cwd: folder,
    });
    expect(stdout).toBe('number undefined true true\n');
  },
);

test("all samples of the client's page compile together as one strict program", () => {
  expect(docCode(PAGE, 'ts').length).toBeGreaterThan(0);
  expect(errorsOf('samples.mts', 'nodenext', 'nodenext')).toBe('');
});

test("the client's page lists exactly the options that the types have", () => {
  expect(errorsOf('options.mts', 'nodenext', 'nodenext')).toBe('');
});

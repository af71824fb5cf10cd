/**
 * Checks that a test runs each code sample of the documentation, and that the documented `spindle` commands
 * exist with their options.
 */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { describe, expect, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { docBlocks, docCode } from '../support/docBlocks.js';
import { cliOf, ROOT } from '../support/root.js';

const CLI = cliOf(ROOT);
const PAGES = [
  'README.md',
  'clients/typescript/README.md',
  'verifier/README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];
const CODE = ['sql', 'ts', 'js', 'python', 'sh'];
const HERE = 'test/docs/samples.test.ts';
const EXAMPLES = 'test/docs/examples.test.ts';
const VERIFIER = 'test/docs/verifier.test.ts';
const BACKUP = 'test/backup/page.ts';

/** Code blocks of each page and language: their number, and the test that runs them. */
const RUN: readonly (readonly [page: string, language: string, count: number, test: string])[] = [
  ['docs/README.md', 'sh', 2, EXAMPLES],
  ['docs/archive.md', 'sql', 2, 'test/books/archive/archive.test.ts'],
  ['docs/backup.md', 'sh', 3, BACKUP],
  ['docs/blackjack.md', 'sh', 1, VERIFIER],
  ['docs/go-live.md', 'sh', 3, EXAMPLES],
  ['docs/operations.md', 'sql', 1, HERE],
  ['docs/par-sheets.md', 'python', 1, EXAMPLES],
  ['docs/par-sheets.md', 'sh', 1, EXAMPLES],
  ['docs/par-sheets.md', 'ts', 1, EXAMPLES],
  ['docs/production.md', 'sql', 1, HERE],
  ['docs/proofs.md', 'sh', 3, VERIFIER],
  ['docs/quick-start.md', 'js', 1, 'test/client/client.test.ts'],
  ['docs/quick-start.md', 'python', 6, EXAMPLES],
  ['docs/quick-start.md', 'sh', 6, EXAMPLES],
  ['docs/quick-start.md', 'ts', 1, EXAMPLES],
  ['docs/raffles.md', 'sh', 1, VERIFIER],
  ['docs/reconcile.md', 'python', 1, 'test/docs/reconcile.test.ts'],
  ['docs/reconcile.md', 'ts', 1, 'test/docs/reconcile.test.ts'],
  ['docs/webhooks.md', 'js', 3, 'test/webhooks/webhookSnippets.test.ts'],
  ['docs/webhooks.md', 'python', 1, 'test/webhooks/webhookSnippets.test.ts'],
  ['docs/webhooks.md', 'sh', 1, EXAMPLES],
  ['verifier/README.md', 'sh', 2, VERIFIER],
];

const CURL = 'the requests are those of docs/quick-start.md, whose first steps are run';
/** Code blocks that no test runs as printed, with the reason. */
const NOT_RUN: readonly (readonly [page: string, language: string, count: number, why: string])[] = [
  [
    'README.md',
    'sh',
    2,
    'starts the service of this folder and its whole suite; the spin is that of docs/quick-start.md',
  ],
  [
    'clients/typescript/README.md',
    'sh',
    1,
    'the package is installed from a file by test/client/package.test.ts',
  ],
  [
    'clients/typescript/README.md',
    'ts',
    6,
    'fragments without their surroundings; test/client/package.test.ts compiles them, and test/client makes these calls',
  ],
  ['docs/blackjack.md', 'sh', 1, 'rounds of an example; test/engine/blackjack plays them'],
  ['docs/compliance.md', 'sh', 2, "pipes gigabytes into another program's tests"],
  [
    'docs/containers.md',
    'sh',
    6,
    'needs a cluster, or builds an image: `npm run test:image` and `npm run test:chart` do what it says',
  ],
  [
    'docs/operators.md',
    'sh',
    8,
    'starts the service of this folder; test/cli makes a partner and plays a raffle and rounds',
  ],
  [
    'docs/production.md',
    'sh',
    7,
    'creates a system user and installs into /opt; test/deployment/installation.unit.test.ts checks the files that it installs',
  ],
  [
    'docs/proofs.md',
    'sh',
    5,
    'witnesses and other spellings of the commands that are run; test/publicLog runs them',
  ],
  [
    'docs/quick-start.md',
    'sh',
    4,
    'one spin of the tabs, the package of the client, reports of a day that is over',
  ],
  ['docs/raffles.md', 'sh', 1, 'names values of an example; test/domain computes its vector'],
  ['docs/requests.md', 'sh', 1, CURL],
  ['docs/webhooks.md', 'sh', 1, 'registers an address of an example; test/webhooks registers others'],
];

/** Splits a code block into lines without comments, and joins lines that end in a backslash. */
const linesOf = (code: string): string[] =>
  code
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .filter((line) => line !== '');

/** Splits a line into shell words, as far as the pages need it. */
const wordsOf = (line: string): string[] => line.match(/'[^']*'|"[^"]*"|\S+/g) ?? [];

const isCommandOnly = (code: string): boolean =>
  linesOf(code).every((line) => line.startsWith('npx spindle ') && !/[|<>]/.test(line));

/** The programs that pages run, by the words that start them. */
const PROGRAMS = {
  'npx spindle': CLI,
  'node spindle-verify.mjs': join(ROOT, 'dist', 'verifier', 'spindle-verify.mjs'),
};
type Program = keyof typeof PROGRAMS;

const commandsOf = (program: Program): string[] => [
  ...new Set(
    PAGES.flatMap((page) =>
      docBlocks(page)
        .filter(({ language }) => language === 'sh')
        .flatMap(({ code }) => linesOf(code))
        .flatMap((line) => line.split(`${program} `).slice(1))
        .map((words) => /^[^|<>;]+/.exec(words)![0].trim()),
    ),
  ),
];

describe('samples of the documentation', () => {
  test('each documentation sample is run by a test, or listed with a reason', () => {
    const found = new Map<string, number>();
    for (const page of PAGES) {
      for (const { language, code } of docBlocks(page)) {
        if (!CODE.includes(language) || (language === 'sh' && isCommandOnly(code))) continue;
        found.set(`${page} ${language}`, (found.get(`${page} ${language}`) ?? 0) + 1);
      }
    }
    const listed = new Map<string, number>();
    for (const [page, language, count] of [...RUN, ...NOT_RUN]) {
      const name = `${page} ${language}`;
      listed.set(name, (listed.get(name) ?? 0) + count);
    }
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(listed));
  });

  test.each(RUN)('the samples of %s in %s (%d) are read by %s', (page, _language, _count, file) => {
    expect(existsSync(join(ROOT, file))).toBe(true);
    expect(readFileSync(join(ROOT, file), 'utf8')).toContain(basename(page));
  });
});

test.each(PAGES)('%s runs no package that asks for a confirmation first', (page) => {
  const lines = docBlocks(page).flatMap(({ language, code }) => (language === 'sh' ? linesOf(code) : []));
  const asking = lines.filter((line) => /\bnpx (?!spindle |--yes |playwright )/.test(line));
  expect(asking.filter((line) => !line.includes('npx vitest'))).toEqual([]);
});

const help = new Map<string, Promise<string>>();
const helpOf = (program: Program, words: readonly string[]): Promise<string> => {
  const name = [program, ...words].join(' ');
  const known = help.get(name);
  if (known !== undefined) return known;
  const args = [PROGRAMS[program], ...words, '--help'];
  const asked = promisify(execFile)(process.execPath, args).then(({ stdout }) => stdout);
  help.set(name, asked);
  return asked;
};

describe.each(Object.keys(PROGRAMS) as Program[])('%s', (program) => {
  test.each(commandsOf(program))(`${program} has the documented command and options: %s`, async (line) => {
    const words = wordsOf(line);
    const path: string[] = [];
    let text = await helpOf(program, []);
    for (const word of words) {
      if (!/^[a-z][a-z-]*$/.test(word)) break;
      const below = await helpOf(program, [...path, word]).catch(() => '');
      if (!new RegExp(`^Usage: spindle(-verify)? ${[...path, word].join(' ')} `).test(below)) break;
      path.push(word);
      text = below;
    }
    expect(path.length + words.filter((word) => word === '--help').length).toBeGreaterThan(0);
    const isGroup = /^Usage: .*\[command\]/m.test(text);
    const next = words[path.length];
    expect(isGroup && next !== undefined && !next.startsWith('-')).toBe(false);
    for (const option of words.filter((word) => /^--[a-z]/.test(word))) {
      const [name] = option.split('=');
      expect(`${text}\n${await helpOf(program, [])}`).toMatch(new RegExp(`${name}\\b`));
    }
  });
});

test.each(['docs/operations.md', 'docs/production.md'])(
  'the SQL of %s runs on the database schema',
  async (page) => {
    const stores = await freshStores();
    const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
    try {
      const undone = sql.begin(async (tx) => {
        // Roles belong to the whole server, so the transaction is rolled back.
        const known = await tx`SELECT 1 FROM pg_roles WHERE rolname = 'spindle'`;
        if (known.length === 0) await tx`CREATE ROLE spindle LOGIN`;
        for (const code of docCode(page, 'sql')) await tx.unsafe(code);
        throw new Error('undone');
      });
      await expect(undone).rejects.toThrow('undone');
    } finally {
      await sql.end();
      await stores.drop();
    }
  },
);

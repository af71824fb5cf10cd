/**
 * Checks that the pages for partners ask for nothing that only an operator has: the `spindle` command, the
 * settings of the service, and pages that are not served. And that what an error means for a bet is said in
 * one place, as the catalogue says it.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Happened, SpindleError } from '../../clients/typescript/src/index.js';
import { BASES } from '../../src/api/contract/apis.js';
import { errorsOf } from '../../src/api/contract/documents.js';
import { ENDPOINTS } from '../../src/api/index.js';
import { Environment } from '../../src/app/settings.js';
import { ERRORS } from '../../src/domain/errors.js';
import { highlighted } from '../../tools/docs/highlight.js';
import { htmlOf } from '../../tools/docs/markdown.js';
import { OPERATORS_GROUP, PAGES } from '../../tools/docs/pages.js';
import { referenceOf } from '../../tools/docs/reference.js';
import { samplesOf } from '../../tools/docs/samples.js';
import { docCode } from '../support/docBlocks.js';
import { ROOT } from '../support/root.js';

const SETTINGS = Object.keys(Environment.properties)
  // The sample programs of partners read a variable of this name, too.
  .filter((name) => name !== 'SPINDLE_URL');
/** A call of the operators' command. Names of formats, such as `spindle proof v1`, are no calls. */
const COMMAND = /npx spindle\b|`spindle (?![\w ]+ v1`)[a-z][^`]*`|^spindle [a-z]/gm;
/** The contract is for partners and operators, and names the settings that change its promises. */
const OF_BOTH = ['docs/contract.md'];

const files = PAGES.filter(({ group }) => group !== OPERATORS_GROUP).map(({ file }) => file);

describe('pages for partners', () => {
  test.each(files)('%s never asks a partner to run the spindle command', (file) => {
    expect(readFileSync(join(ROOT, file), 'utf8').match(COMMAND) ?? []).toEqual([]);
  });

  test.each(files.filter((file) => !OF_BOTH.includes(file)))('%s names no setting of the service', (file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    expect(SETTINGS.filter((name) => new RegExp(`(?<![\\w.])${name}(?!\\w)`).test(text))).toEqual([]);
  });
});

test('finds the commands of the page for operators', () => {
  expect(readFileSync(join(ROOT, 'docs', 'operators.md'), 'utf8').match(COMMAND)!.length).toBeGreaterThan(50);
});

describe('the table of what each response means', () => {
  const TABLE = 'docs/requests.md';
  const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
  const [, section] = read(TABLE).split('### What to do after each response\n');
  const rows = section!
    .split('\n### ')[0]!
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, response, happened]) => ({ response: response!, happened: happened! }));
  /** How the table says what a code of the catalogue says (`happened` in src/domain/errors.ts). */
  const WORDS: Readonly<Record<Happened, string>> = {
    no: 'no',
    unknown: 'not known',
    'no-with-request-id': 'no; without a `requestId` not known',
    'other-request': 'no; the `requestId` belongs to another request',
  };
  const bets = ENDPOINTS.filter(({ operationId }) => ['spin', 'dealRound'].includes(operationId));
  const codes = [...new Set(bets.flatMap(errorsOf))];

  test.each(codes.map((entry) => [entry.code, entry] as const))(
    'the table says of %s what the catalogue says',
    (code, { status, happened }) => {
      const named = rows.filter(({ response }) => response.includes(code));
      const others = rows.filter(({ response }) =>
        response.startsWith(status >= 500 ? 'any 5xx' : 'any other 4xx'),
      );
      expect((named.length > 0 ? named : others).map((row) => row.happened)).toEqual([WORDS[happened]]);
    },
  );

  test('a code that only a newer service knows happened as the table says of its status', () => {
    const unknown = (status: number) => new SpindleError({ status, code: 'KS-9999', message: 'm' }).happened;
    expect(WORDS[unknown(503)]).toBe(rows.find(({ response }) => response.startsWith('any 5xx'))!.happened);
    expect(WORDS[unknown(422)]).toBe(
      rows.find(({ response }) => response.startsWith('any other 4xx'))!.happened,
    );
  });

  test.each(Object.values(ERRORS).map((entry) => [entry.code, entry] as const))(
    'the client judges %s as the catalogue does',
    (code, { status, retry, happened }) => {
      expect(new SpindleError({ status, code, message: 'm' })).toMatchObject({ retry, happened });
    },
  );

  const hasPython = spawnSync('python3', ['--version']).status === 0;
  const [calling, repeating] = docCode('docs/quick-start.md', 'python').slice(1);
  /** Runs the quick start's functions with a clock that only waits advance. Returns what is printed. */
  const python = (program: string): unknown => {
    const clock = `now = [0.0]
time.monotonic = lambda: now[0]
time.sleep = lambda seconds: now.__setitem__(0, now[0] + seconds)`;
    const functions = repeating!.split('\ngame = ')[0];
    const run = spawnSync('python3', ['-c', [calling, functions, clock, program].join('\n')], {
      env: { PATH: process.env.PATH, SPINDLE_KEY: 'ks_key' },
      encoding: 'utf8',
    });
    expect(run.stderr).toBe('');
    return JSON.parse(run.stdout);
  };

  test.skipIf(!hasPython)(
    'the Python program of the quick start judges each code as the catalogue does',
    () => {
      const judged = python(`judged = {}
for code, status in ${JSON.stringify(codes.map(({ code, status }) => [code, status]))}:
    def call(*_):
        raise Refused(status, {"errorCode": code, "message": ""}, 0)
    try:
        once("/spin", {})
    except (Refused, Unknown) as error:
        judged[code] = type(error).__name__
print(json.dumps(judged))`);
      const right = codes.map(({ code, happened }) => [code, happened === 'unknown' ? 'Unknown' : 'Refused']);
      expect(judged).toEqual(Object.fromEntries(right));
    },
  );

  test.skipIf(!hasPython)('the Python program of the quick start outlasts a window of the rate limit', () => {
    const { code, status } = ERRORS.spinRateExceeded;
    const answered = python(`left = [Refused(${status}, {"errorCode": "${code}", "message": ""}, 60)]
def call(*_):
    if left:
        raise left.pop()
    return "dealt"
print(json.dumps(once("/spin", {})))`);
    expect(answered).toBe('dealt');
  });

  test.each(files.filter((file) => file !== TABLE))('%s contradicts the table nowhere', (file) => {
    const text = read(file).replaceAll(/```[\s\S]*?```/g, '');
    const wrong = text.split(/(?<=[.:;])\s|\n\s*\n|\n(?=[-|#])/).filter((sentence) => {
      const may = /may have happened|may have taken effect|not known/.test(sentence);
      if (!may && !/did not happen/.test(sentence)) return false;
      const named = Object.values(ERRORS).filter(({ code }) => sentence.includes(code));
      const agreeing = named.filter(({ happened }) => (happened === 'unknown') === may);
      // KS-5002 depends on the requestId, and a status has codes of both kinds: only the table says that.
      const isVague = /\b5xx\b/.test(sentence) || named.includes(ERRORS.unavailable);
      return isVague || agreeing.length < named.length;
    });
    expect(wrong).toEqual([]);
  });
});

test.each(files)('%s names webhook-signature wherever it says that two secrets are valid', (file) => {
  const paragraphs = readFileSync(join(ROOT, file), 'utf8').split(/\n\s*\n|\n(?=[-|])/);
  const both = paragraphs.filter((each) => /(?:signed|made) with both|both secrets|old secret/.test(each));
  expect(both.filter((each) => !each.includes('webhook-signature'))).toEqual([]);
});

describe('served pages', () => {
  const served = PAGES.map((page) => [page.slug || 'index', page] as const);
  /** Files that readers make, download or unpack, as the same page says. */
  const OWN = new Set(['shop.mjs', 'reconcile.mts', 'verify.mjs', 'spindle-verify.mjs', 'PROVENANCE.md']);
  const NAMES =
    /(?<![\w./$-])(?:[\w-]+\/)*[\w-]+(?:\.[\w-]+)*\.(?:md|ts|mts|mjs|lua|sql)\b|\bmanifest\.sha256\b|(?<![\w./-])(?:src|test|lua|deploy|docs|tools|openapi)\/[\w/-]+/g;
  /** Pages for readers who have the source code, as they say: operators, and laboratories. */
  const OF_SOURCE = ['compliance', 'operators'];

  test.each(served)('the page %s names no file that its readers do not have', (slug, page) => {
    const source = readFileSync(join(ROOT, page.file), 'utf8');
    const html = page.file.endsWith('.json') ? referenceOf(JSON.parse(source)) : htmlOf(source, page, PAGES);
    const named = html.replaceAll(/<[^>]+>/g, '').match(NAMES) ?? [];
    const isSource = (name: string): boolean => OF_SOURCE.includes(slug) && /^(?:src|test)\//.test(name);
    expect(named.filter((name) => !OWN.has(name) && !isSource(name))).toEqual([]);
  });

  test.each(OF_SOURCE)('the page %s says that its readers need the source code', (slug) => {
    expect(readFileSync(join(ROOT, 'docs', `${slug}.md`), 'utf8')).toMatch(/\bthe source code\b/);
  });

  test('a command is not shown in one colour', () => {
    const colours = highlighted('curl -sS "$URL/games" -H "X-API-Key: $KEY"', 'sh').match(/<i class="\w+">/g);
    expect(new Set(colours).size).toBeGreaterThan(2);
  });

  test.each([
    ['spin', true],
    ['dealRound', true],
    ['actInRound', true],
    ['registerGame', false],
  ])(
    'the Python sample of %s repeats it until its result is known only if it moves money once',
    (id, isOnce) => {
      const { method, path, scope } = ENDPOINTS.find(({ operationId }) => operationId === id)!;
      const asked = { operationId: id, method, path, base: BASES[scope], parameters: [], body: {} };
      expect(samplesOf(asked, true).at(-1)!.code.startsWith('answer = once(')).toBe(isOnce);
    },
  );
});

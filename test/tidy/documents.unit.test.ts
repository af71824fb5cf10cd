/**
 * Checks that the documentation matches the code: settings, paths, links, and the sections that comments
 * refer to.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Environment, PRODUCTION_RANGES, SETTING_GROUPS } from '../../src/app/settings.js';
import { ROOT } from '../support/root.js';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const filesIn = (folder: string, ending: RegExp): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => ending.test(file))
    .map((file) => join(folder, file));

/** Names of the folders directly below src. */
const rooms = readdirSync(join(ROOT, 'src')).filter((name) =>
  statSync(join(ROOT, 'src', name)).isDirectory(),
);

const pages = [
  ...readdirSync(ROOT).filter((file) => file.endsWith('.md')),
  ...filesIn('docs', /\.md$/),
  'bench/README.md',
  'bench/history.md',
  'test/README.md',
  'clients/typescript/README.md',
  'clients/typescript/API_CHANGELOG.md',
  ...rooms.map((name) => `src/${name}/README.md`),
];

/** Returns the anchor that GitHub gives a heading. */
const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

const anchorsOf = (path: string): string[] =>
  [...read(path).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) => anchorOf(heading!));

describe('links in the documentation', () => {
  test.each(pages)('links in %s lead to existing files and headings', (page) => {
    const broken = [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)]
      .filter(([, path, anchor]) => {
        const target = path === '' ? page : join(dirname(page), path!);
        if (!existsSync(join(ROOT, target))) return true;
        return anchor !== undefined && !anchorsOf(target).includes(anchor);
      })
      .map(([link]) => link);
    expect(broken).toEqual([]);
  });
});

describe('file names in the documentation', () => {
  // The changelog is exempt because older versions had other file names.
  test.each(pages.filter((page) => page !== 'CHANGELOG.md'))('%s names only files that exist', (page) => {
    const named = [
      ...read(page).matchAll(/`((?:src|lua|workers|test|bench|grafana|docs|openapi)\/[\w./-]*)`/g),
    ].map(([, path]) => path!);
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});

describe('README.md of each folder of src', () => {
  const LINES_MAX = 11;

  test.each(rooms)(`src/%s/README.md introduces the folder in at most ${LINES_MAX} lines`, (name) => {
    const lines = read(`src/${name}/README.md`).trimEnd().split('\n');
    expect(lines[0]).toBe(`# ${name}`);
    expect(lines.length).toBeLessThanOrEqual(LINES_MAX);
    expect(lines.filter((line) => line.startsWith('**Start reading** at `src/'))).toHaveLength(1);
    // The check of the imports says what a room may import, and the folders of tests have the rooms' names.
    expect(lines.filter((line) => /^\*\*(May import|Tests)/.test(line))).toEqual([]);
  });

  test.each(rooms)('src/%s/README.md names only files and folders that exist', (name) => {
    // Paths may be relative to the root of the project, to src, or to the folder of the README.md.
    const exists = (path: string): boolean =>
      ['', 'src', join('src', name)].some((from) => existsSync(join(ROOT, from, path)));
    const named = [...read(`src/${name}/README.md`).matchAll(/`(\w[\w.-]*[/.][\w./-]*)`/g)].map(
      ([, path]) => path!,
    );
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((path) => !exists(path))).toEqual([]);
  });

  test.each(rooms)(
    'src/%s/README.md names every subfolder beside it, except those of resources of the API',
    (name) => {
      const folders = readdirSync(join(ROOT, 'src', name), { withFileTypes: true })
        .filter(
          (entry) => entry.isDirectory() && !existsSync(join(ROOT, 'src', name, entry.name, 'contract.ts')),
        )
        .map((entry) => `\`${entry.name}/\``);
      const text = read(`src/${name}/README.md`);
      expect(folders.filter((folder) => !text.includes(folder))).toEqual([]);
    },
  );
});

/** Returns the operations of the partner API, such as `POST /spin`, with their success status. */
const partnerOperations = (): string[] => {
  const { paths } = JSON.parse(read('openapi/partner.v1.json')) as {
    paths: Record<string, Record<string, { operationId?: string; responses?: Record<string, unknown> }>>;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { operationId }]) => operationId !== undefined)
      .map(([method, { responses }]) => {
        const status = Object.keys(responses!).find((each) => each.startsWith('2'));
        return `${method.toUpperCase()} ${path} ${status}`;
      }),
  );
};

/** Paths of version 1.0.0 of the API. Each later path has a line in the client's changelog. */
const OF_1_0_0 = [
  ...['/par-sheets', '/games', '/games/{id}/pool', '/spin', '/spins/{spinId}', '/players/{playerId}'],
  ...['/players/{playerId}/spins', '/webhooks', '/webhooks/{id}', '/webhooks/{id}/deliveries', '/version'],
  ...[
    '/settlements',
    '/settlements/{date}',
    '/settlements/{date}/acknowledge',
    '/settlements/{date}/dispute',
  ],
];

describe('clients/typescript/API_CHANGELOG.md', () => {
  test("the client's API changelog names each operation that was added after 1.0.0", () => {
    const log = read('clients/typescript/API_CHANGELOG.md').replaceAll(/\s+/g, ' ');
    const isNamed = (operation: string): boolean => {
      const [method, path] = operation.split(' ');
      return log.includes(`\`${method} ${path}\``);
    };
    const later = partnerOperations().filter((operation) => !OF_1_0_0.includes(operation.split(' ')[1]!));
    expect(later.filter((operation) => !isNamed(operation))).toEqual([]);
  });
});

describe('docs/contract.md', () => {
  test('the contract lists exactly the operations of the partner API, each with its success status', () => {
    const section = read('docs/contract.md').split('### 2.6 ')[1]!.split('\n## ')[0]!;
    const listed = [...section.matchAll(/^\| `([A-Z]+ \/\S*)` \| (\d+) \|/gm)].map(
      ([, operation, status]) => `${operation} ${status}`,
    );
    expect(listed.sort()).toEqual(partnerOperations().sort());
  });

  test('the contract has every section that code and tests refer to', () => {
    const sections = new Set(
      [...read('docs/contract.md').matchAll(/^#{2,3} (\d+(?:\.\d+)?)\.? /gm)].map(([, number]) => number!),
    );
    const folders = [
      'src',
      'test',
      'lua',
      'workers',
      'bench',
      'clients/typescript/src',
      'console',
      'tools',
      'openapi',
    ];
    const files = folders.flatMap((folder) => filesIn(folder, /\.(tsx?|lua|mjs)$/));
    const lines = files.flatMap((file) =>
      read(file)
        .split('\n')
        .map((line) => ({ file, line })),
    );
    const pointers = lines
      // A reference to a section of another document has the name of that document next to it.
      .filter(({ line }) => !/\b(APPNOTE|RFC \d+)\b/.test(line))
      .flatMap(({ file, line }) =>
        [...line.matchAll(/§(\d+(?:\.\d+)?)/g)].map(([, number]) => ({ file, number })),
      );
    expect(pointers.length).toBeGreaterThan(20);
    expect(pointers.filter(({ number }) => !sections.has(number!))).toEqual([]);
  });

  test('the sections of docs/contract.md are numbered without a gap', () => {
    const numbers = [...read('docs/contract.md').matchAll(/^## (\d+)\. /gm)].map(([, number]) =>
      Number(number),
    );
    expect(numbers).toEqual(numbers.map((_, place) => place + 1));
  });
});

/**
 * Returns the range of a numeric setting as text, such as `1 to 65,535`, or an empty text for other settings.
 */
function rangeOf(name: string, schema: object): string {
  const ranges: Record<string, object> = PRODUCTION_RANGES;
  const { minimum, maximum }: { minimum?: number; maximum?: number } = { ...schema, ...ranges[name] };
  if (minimum === undefined || maximum === undefined) return '';
  return `${minimum.toLocaleString('en')} to ${maximum.toLocaleString('en')}`;
}

function settingRow(name: string, schema: object): string {
  const { default: fallback, description } = schema as { default?: unknown; description?: string };
  const value = fallback === undefined ? 'none' : `\`${fallback}\``;
  return `| \`${name}\` | ${value} | ${rangeOf(name, schema)} | ${description} |`;
}

describe('docs/settings.md', () => {
  test.each(Object.entries(SETTING_GROUPS))(
    'docs/settings.md lists exactly the settings of the group "%s", with default, range and meaning',
    (heading, group) => {
      const [, section] = read('docs/settings.md').split(`\n## ${heading}\n`);
      const rows = section!.split('\n## ')[0]!.match(/^\| `[A-Z_]+` \|.*$/gm);
      expect(rows).toEqual(Object.entries(group).map(([name, schema]) => settingRow(name, schema)));
    },
  );

  test('docs/settings.md has every setting under a heading, and at most 45 settings', () => {
    const rows = read('docs/settings.md').match(/^\| `[A-Z_]+` \|.*$/gm);
    expect(rows).toHaveLength(Object.keys(Environment.properties).length);
    expect(rows!.length).toBeLessThanOrEqual(45);
    // The range of a setting must be in the column for ranges, because no test checks the text of its
    // meaning.
    expect(rows!.filter((row) => / (in production|or more|at most \d+)( \||\.)/.test(row))).toEqual([]);
  });
});

describe('docs/adr', () => {
  test('docs/adr numbers its records without a gap and lists each in its README', () => {
    const records = readdirSync(join(ROOT, 'docs/adr'))
      .filter((file) => file !== 'README.md')
      .sort();
    const listed = [...read('docs/adr/README.md').matchAll(/^\| (\d{4}) \| \[(.+)\]\((.+)\) \|$/gm)];
    expect(listed.map(([, , , file]) => file)).toEqual(records);
    for (const [place, [, number, title, file]] of listed.entries()) {
      expect(number).toBe(String(place + 1).padStart(4, '0'));
      expect(file!.startsWith(`${number}-`)).toBe(true);
      expect(read(`docs/adr/${file}`).split('\n')[0]).toBe(`# ${number}. ${title}`);
    }
  });
});

/** Maximum number of pages. More pages would be hard to navigate for a newcomer, so they should be merged. */
const PAGES_MAX = 27;

describe('docs/README.md', () => {
  test('docs/README.md lists each page of the folder exactly once, on its own line', () => {
    const files = readdirSync(join(ROOT, 'docs')).filter((file) => file.endsWith('.md'));
    const listed = [...read('docs/README.md').matchAll(/^- \[[^\]]+\]\(([\w-]+\.md)\): .+\.$/gm)].map(
      ([, file]) => file!,
    );
    expect(listed.sort()).toEqual(files.filter((file) => file !== 'README.md').sort());
  });

  test(`the documentation has at most ${PAGES_MAX} pages, including its README`, () => {
    const files = filesIn('docs', /\.md$/).filter((file) => !file.startsWith(join('docs', 'adr')));
    expect(files.length).toBeLessThanOrEqual(PAGES_MAX);
  });
});

test('docs/glossary.md has one line for each term in alphabetical order, and at most 90 lines', () => {
  const lines = read('docs/glossary.md').trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(90);
  const [, , ...rows] = lines.filter((line) => line.startsWith('|'));
  const terms = rows.map((row) => /^\| ([^|]+) \| [^|]+ \| (?:[^|]+ )?\|$/.exec(row)?.[1]?.toLowerCase());
  expect(terms).toEqual([...new Set(terms)].sort());
});

test('README.md of the project has fewer than 120 lines', () => {
  expect(read('README.md').split('\n').length).toBeLessThan(120);
});

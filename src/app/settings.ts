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
  HOST: Type.String({ default: '127.0.0.1', description: 'Address that the API listens on' }),
  PORT: Type.Integer({ minimum: 0, maximum: 65_535, default: 8080, description: 'Port of the API' }),
  DATA_DIR: Type.String({
    default: '.data',
    description: 'Folder of the embedded stores and the operator key',
  }),
  OPERATOR_API_KEY: Type.Optional(
    Type.String({
      minLength: 16,
      description:
        'Key of the operator API. Default: the first start creates a key, prints it once and stores it in DATA_DIR',
    }),
  ),
  SPINDLE_URL: Type.Optional(
    Type.String({
      pattern: '^https?://.',
      description:
        'Address of the service, for the `spindle` command. Default: the service that was started on DATA_DIR, then HOST and PORT',
    }),
  ),
  BRAND: Type.String({
    default: 'Spindle',
    pattern: '^[A-Za-z][A-Za-z0-9]{0,31}$',
    description: 'Name of the service in GET /version and in the names of headers',
  }),
  ACK: Type.Union([Type.Literal('redis'), Type.Literal('replica'), Type.Literal('ledger')], {
    default: 'redis',
    description:
      'When a slot spin is answered. `redis`: after Redis has it on disk. `replica` (Redis Cluster only): after all replicas have it on disk, too, or Postgres has committed it. `ledger`: after Postgres has committed it',
  }),
  IDEMPOTENCY_TTL_S: Type.Integer({
    minimum: 1,
    maximum: 2_592_000,
    default: 259_200,
    description:
      'Minimum time for which the requestId of a spin or deal is bound, in seconds; the maximum time is REQUEST_ID_WINDOW_S longer. A change takes effect at the next start, and a shorter time only for ids that are bound later',
  }),
  SETTLEMENT_CRON: Type.String({
    default: '0 2 * * *',
    description:
      'Cron expression (five fields, UTC) for the due time of settlement reports. A past day is due at the first such time after its end; workers look for due days every minute',
  }),
  METRICS_HOST: Type.String({
    default: '127.0.0.1',
    description: 'Address that the metrics port listens on, independent of HOST',
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
      description:
        'Token that readers of GET /metrics must send as `Authorization: Bearer`. Default: no token is required',
    }),
  ),
  LOG_LEVEL: Type.Union(
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'].map((level) => Type.Literal(level)),
    { default: 'info', description: 'Lowest level of the log lines that are written' },
  ),
};

/** Settings of an installation with external stores and real money. */
const PRODUCTION = {
  REDIS_URL: Type.Optional(
    Type.String({
      pattern: '^rediss?://.',
      description:
        'Address of Redis 7.0 or later, or addresses of several servers of one Redis Cluster, separated by commas (docs/scaling.md). Default: the service starts an embedded server',
    }),
  ),
  DATABASE_URL: Type.Optional(
    Type.String({
      pattern: '^postgres(ql)?://.',
      description:
        'Address of Postgres 15 or later. Of several hosts (`a:5432,b:5432`) the primary is used. Default: the service starts an embedded server',
    }),
  ),
  POSITION_FILE: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'File outside both stores that records their progress, for workers and `spindle recover`. With this file, a start deals nothing if the stores were restored to an older state (docs/backup.md)',
    }),
  ),
  SEEDS_KEY: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9+/]{43}=(,[A-Za-z0-9+/]{43}=)*$',
      description:
        'Keys that encrypt undealt seeds, nonces and outcomes in Postgres, each 32 bytes in base64, separated by commas. The first key encrypts, and all keys decrypt. Default: WEBHOOK_SECRETS_KEY, or the key in DATA_DIR if Postgres is embedded; otherwise nothing is encrypted',
    }),
  ),
  WEBHOOK_SECRETS_KEY: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9+/]{43}=(,[A-Za-z0-9+/]{43}=)*$',
      description:
        'Keys that encrypt the secrets of webhooks in Postgres, each 32 bytes in base64, separated by commas. The first key encrypts, and all keys decrypt. Default: the key in DATA_DIR if Postgres is embedded; otherwise the secrets are not encrypted',
    }),
  ),
  LOG_ORIGIN: Type.Optional(
    Type.String({
      pattern: '^[!-*,-~]{1,255}$',
      description:
        "Name of the public log (docs/proofs.md), which can't change after the log has begun. Default: a name derived from the id of the database",
    }),
  ),
  LOG_KEY: Type.Optional(
    Type.String({
      pattern: '^PRIVATE\\+KEY\\+',
      description:
        'Signer keys of the public log (`PRIVATE+KEY+name+id+key`), separated by commas, newest first, with the origin of the log as their name. For workers only. Default: the first start creates a key and stores it in `DATA_DIR` if Postgres is embedded, otherwise in Postgres',
    }),
  ),
  LOG_POLICY: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'File with the witnesses of the public log, as a C2SP tlog-policy (`witness`, `group`, `quorum`). For workers only; all workers need the same file. Default: no witnesses',
    }),
  ),
  LOG_COPY_DIR: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'Folder outside both stores for a copy of the published files of the public log (C2SP tlog-tiles), for workers and `spindle log`. With this copy, a start deals nothing if Postgres was restored to an older state, and `spindle log import` restores the lost records (docs/backup.md)',
    }),
  ),
  TRUST_PROXY: Type.Optional(
    Type.String({
      description:
        'Trusted proxies, whose `X-Forwarded-For` and PROXY protocol headers are used: their number, or their addresses and networks separated by commas. Default: none',
    }),
  ),
  HTTP_SERVER: Type.Optional(
    Type.Union([Type.Literal('uws'), Type.Literal('node')], {
      description:
        'HTTP server: `uws` (uWebSockets.js) or `node` (node:http). docs/production.md lists the differences. Default: `uws` if it can be loaded',
    }),
  ),
  CONNECTIONS_MAX: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    default: 10_000,
    description:
      'Maximum number of open connections, or fewer if the process may not open enough files. Further connections are closed',
  }),
  CONNECTIONS_PER_ADDRESS_MAX: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    default: 1000,
    description:
      'Maximum number of open connections from one IPv4 address or IPv6 /64. Loopback addresses and trusted proxies have no limit',
  }),
  SHUTDOWN_GRACE_S: Type.Integer({
    minimum: 1,
    maximum: 300,
    default: 5,
    description:
      'Time in seconds that a front end has to answer received requests after a stop signal. Then it closes the connections',
  }),
  SMTP_URL: Type.Optional(
    Type.String({
      pattern: '^smtps?://.',
      description:
        'Mail server, such as `smtps://user:password@mail.example.com`. Default: e-mails are not sent',
    }),
  ),
  SMTP_FROM: Type.String({
    default: 'spindle@localhost',
    pattern: EMAIL_PATTERN,
    description: 'Sender address of e-mails',
  }),
  OPERATOR_EMAIL: Type.Optional(
    Type.String({
      pattern: EMAIL_PATTERN,
      description:
        'Address that gets an e-mail if a settlement is overdue for a day, or if files of the program differ from its build. Default: no e-mails',
    }),
  ),
  PROGRAM_CHANGED: Type.Union([Type.Literal('alert'), Type.Literal('stop')], {
    default: 'alert',
    description: `Reaction if files of the program differ from the list made by its build. \`alert\`: operators are notified. \`stop\`: in addition, a start ends before it deals, and a running process answers spins with ${ERRORS.unavailable.code}`,
  }),
  LEDGER_KEEP_DAYS: Type.Integer({
    minimum: 2,
    maximum: 36_500,
    default: 400,
    description:
      'Number of complete days of the ledger that `spindle ledger drop` leaves in Postgres. Days with bound request ids are always left',
  }),
  WEBHOOK_RETENTION_DAYS: Type.Integer({
    minimum: 30,
    maximum: 3650,
    default: 30,
    description:
      'Number of days for which webhook events, deliveries and e-mails are kept after they ended. `GET /events` guarantees 30 days',
  }),
  CLOCK_SKEW_MAX_S: Type.Integer({
    minimum: 1,
    maximum: 31_536_000,
    default: 10,
    description: `Maximum difference in seconds between the clock of a front end and the clock of Redis or the newest entry of a cell. Beyond it, spins get ${ERRORS.unavailable.code}, and no cell is prepared`,
  }),
  ALLOW_VOLATILE_REDIS: Type.Union([Type.Literal('0'), Type.Literal('1')], {
    default: '0',
    description: '`1` accepts a Redis that may lose or evict data. Never use it with real money',
  }),
  ALLOW_VOLATILE_POSTGRES: Type.Union([Type.Literal('0'), Type.Literal('1')], {
    default: '0',
    description:
      '`1` accepts a Postgres with `fsync` or `full_page_writes` off (docs/settings.md, section Stores)',
  }),
};

/** Settings of an installation with several processes or many players. */
const LARGE = {
  ROLES: Type.String({
    default: 'http,worker',
    pattern: '^(http|worker)(,(http|worker))?$',
    description:
      'Roles of the process: `http` serves the APIs; `worker` flushes the ledger, makes blocks and settlement reports, and delivers webhooks',
  }),
  FRONT_ENDS: Type.String({
    default: '1',
    description:
      'Number of front-end processes that one start runs on HOST and PORT, 1 to 64 (docs/scaling.md). Above 1, the first process has the role `worker` and starts the front ends; with `ROLES=http` it is one of the front ends. `auto`: the number of available processors less one, at least 1',
  }),
  CELLS: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 256,
      description: `Number of cells of a new database. Default: ${CELLS_BY_DEFAULT}. \`spindle cells add\` adds more`,
    }),
  ),
  DATABASE_DIRECT_URL: Type.Optional(
    Type.String({
      pattern: '^postgres(ql)?://.',
      description:
        'Direct address of the database, for the migrations at a start, if `DATABASE_URL` leads to PgBouncer. No statement is then prepared (docs/production.md)',
    }),
  ),
  BLOCK_WORKERS: Type.Integer({
    minimum: 1,
    maximum: 64,
    default: 1,
    description: 'Number of threads that make outcome blocks',
  }),
  SPIN_DEADLINE_MS: Type.Integer({
    minimum: 1,
    maximum: 86_400_000,
    default: 3000,
    description:
      'Time in ms from the arrival of a spin to its answer at the latest; a spin not sent to Redis by then is refused',
  }),
  OUTBOX_MAX_ENTRIES: Type.Integer({
    minimum: 1,
    maximum: 1_000_000_000,
    default: 1_000_000,
    description: `Maximum number of ledger entries of a cell that wait for Postgres. Their maximum size is 256 bytes for each of this number. At either limit spins get ${ERRORS.unavailable.code}`,
  }),
  REQUEST_ID_WINDOW_S: Type.Integer({
    minimum: 1,
    maximum: 86_400,
    default: 1800,
    description: 'Minimum time in seconds for which Redis holds a requestId. After that, the ledger binds it',
  }),
  REQUEST_FILTERS_MAX_MB: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description:
        'Maximum memory for the request-id filters of each front end, in MB; a request id takes 2 to 3 bytes. Default: a quarter of the memory that the process may use, divided by FRONT_ENDS. Beyond the limit the filters become coarser, so more new ids are looked up in Postgres, but no id is forgotten. A front end does not start if the coarsest filters, which take half the memory, do not fit',
    }),
  ),
};

/**
 * Settings by kind of installation, under the headings of docs/settings.md. A test compares that page with
 * these settings.
 */
export const SETTING_GROUPS = {
  Everyone: EVERYONE,
  Production: PRODUCTION,
  'Large installations': LARGE,
} as const;

/** Every setting, with its default, range and meaning. */
export const Environment = Type.Object({ ...EVERYONE, ...PRODUCTION, ...LARGE });

/**
 * Every setting that a process reads: those of {@link Environment}, two undocumented ones for tests, and one
 * that the first process sets for the processes that it starts.
 */
export const AllSettings = Type.Object({
  ...Environment.properties,
  /**
   * Failpoint (failpoints.ts) at which the process kills itself, as `name:n`. The process kills itself when
   * it passes the failpoint for the n-th time.
   */
  FAILPOINT: Type.Optional(Type.String({ pattern: '^[a-z.-]+(:[1-9][0-9]*)?$' })),
  /** JSON of the constants (constants.ts) with changed values. */
  TEST_CONSTANTS: Type.Optional(Type.String()),
  /** Name of a front end that another process of the program has started (FRONT_ENDS). */
  FRONT_END_NAME: Type.Optional(Type.String({ pattern: '^front-end-[1-9][0-9]?$' })),
});

/**
 * Log output: one JSON object per line (pino). No line contains a secret. The number of similar lines per
 * second is limited, so that a fault in every request does not cost more than the requests themselves.
 */
import { type DestinationStream, type Logger, pino } from 'pino';
import { isRedisAway } from '../engine/redis/scriptErrors.js';
import { LogOutput } from '../platform/logOutput.js';
import { HIDDEN, withoutSecrets } from '../platform/secretsInLogs.js';
import { isPostgresAway } from '../postgres/postgresErrors.js';

export interface LoggerOptions {
  readonly level: string;
  /** Secret texts that must not appear in any line. */
  readonly secrets: readonly string[];
}

/**
 * Maximum number of similar lines per second. One more line at the end of the second reports the number of
 * suppressed lines.
 */
const LINES_A_SECOND = 5;

const STANDARD_OUTPUT = 1;

/** @param destination stream to write to; default: standard output */
export function openLogger(
  { level, secrets }: LoggerOptions,
  destination: DestinationStream = new LogOutput(STANDARD_OUTPUT),
): Logger {
  const limit = new Limit();
  const outages = new Outages();
  const { info, fatal } = pino.levels.values as { info: number; fatal: number };
  return pino(
    {
      level,
      base: { service: 'spindle', pid: process.pid },
      serializers: { err: errorFields },
      redact: { paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`]), censor: HIDDEN },
      hooks: {
        logMethod(args, method, number) {
          // Fatal lines require people to act, and debug lines were requested with LOG_LEVEL, so neither kind
          // is ever suppressed.
          if (number < info || number >= fatal) {
            method.apply(this, args);
            return;
          }
          const [fields, message] =
            typeof args[0] === 'string' ? [{}, args[0]] : [args[0] as object, String(args[1])];
          const kind = kindOf(fields, message);
          const { err, requestId, status } = fields as Record<string, unknown>;
          if (requestId === undefined && isStoreAway(err) && !outages.isNew(kind)) return;
          limit.say(
            kind,
            (unsaid) => method.apply(this, [{ ...fields, ...unsaid }, message]),
            status === 500 ? String(requestId) : undefined,
          );
        },
        streamWrite: (line) => withoutSecrets(line, secrets),
      },
    },
    destination,
  );
}

/**
 * Returns the key by which similar log lines are counted: the same fault of any request or cell, or the same
 * state change of one cell.
 */
function kindOf(fields: object, message: string): string {
  const { err, operation, errorCode, cell } = fields as Record<string, unknown>;
  return `${message}|${operation}|${errorCode}|${err === undefined ? cell : ''}`;
}

const isStoreAway = (error: unknown): boolean =>
  error instanceof Error && (isPostgresAway(error) || isRedisAway(error));

/** Time without a failure after which an outage of a store counts as over, in ms. */
const OUTAGE_OVER_MS = 15_000;
/** Maximum number of kinds of lines that are remembered. */
const OUTAGE_KINDS_MAX = 1000;

/**
 * Remembers which failures of an outage were logged. While a store is away, everything that needs it is tried
 * again and again, and only the first failure of each kind is news.
 */
class Outages {
  readonly #failedAt = new Map<string, number>();

  isNew(kind: string): boolean {
    const now = performance.now();
    const before = this.#failedAt.get(kind);
    if (before === undefined && this.#failedAt.size === OUTAGE_KINDS_MAX) this.#failedAt.clear();
    this.#failedAt.set(kind, now);
    return before === undefined || now - before > OUTAGE_OVER_MS;
  }
}

/** What a line says about lines that were suppressed. */
interface Unsaid {
  /** Number of suppressed lines. */
  readonly unsaid?: number;
  /** Their ids of requests, if all ids must be in the log. */
  readonly unsaidRequestIds?: readonly string[];
}

interface Kind {
  said: number;
  left: number;
  ids: string[];
  last: (unsaid: Unsaid) => void;
}

/** Maximum number of request ids in one line. */
const IDS_A_LINE = 100;

/**
 * Passes on the first log lines of each kind per second at once, and the last line at the end of the second.
 */
class Limit {
  readonly #kinds = new Map<string, Kind>();
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param line function that writes the line; it gets what is to be said about lines suppressed before
   * @param id id of the request, if it must be in the log
   */
  say(kind: string, line: (unsaid: Unsaid) => void, id?: string): void {
    let known = this.#kinds.get(kind);
    if (known === undefined) {
      known = { said: 0, left: 0, ids: [], last: line };
      this.#kinds.set(kind, known);
      this.#timer ??= setTimeout(() => this.#turn(), 1000).unref();
    }
    if (known.said < LINES_A_SECOND) {
      known.said++;
      line({});
    } else {
      known.left++;
      known.last = line;
      if (id !== undefined) known.ids.push(id);
      if (known.ids.length > IDS_A_LINE) tellUnsaid(known);
    }
  }

  #turn(): void {
    this.#timer = undefined;
    const kinds = [...this.#kinds.values()];
    this.#kinds.clear();
    for (const kind of kinds) if (kind.left > 0) tellUnsaid(kind);
  }
}

/** Writes the newest suppressed line, with the number of the others. */
function tellUnsaid(kind: Kind): void {
  const unsaid = kind.left - 1;
  // The newest id is a member of the line itself.
  const unsaidRequestIds = kind.ids.slice(0, -1);
  kind.last({
    ...(unsaid === 0 ? {} : { unsaid }),
    ...(unsaidRequestIds.length === 0 ? {} : { unsaidRequestIds }),
  });
  kind.left = 0;
  kind.ids = [];
}

/**
 * Fields that are always redacted. No code logs these fields, so the redaction is a second line of defence.
 */
const SECRET_FIELDS = [
  'apiKey',
  'authorization',
  'headers',
  'password',
  'secret',
  'seed',
  'nonce',
  'outcomes',
  'body',
];

const CAUSES_MAX = 3;

/**
 * Returns the logged fields of an error. Other fields are dropped, because a Redis client's error contains
 * the command with passwords and sealed outcomes, and a Postgres client's error contains the row.
 */
function errorFields(error: unknown, depth = 0): object {
  if (!(error instanceof Error)) return { message: typeof error === 'string' ? error : typeof error };
  const { message, stack, cause } = error;
  const { code } = error as { code?: unknown };
  const causes = error instanceof AggregateError ? error.errors : cause === undefined ? [] : [cause];
  return {
    type: error.constructor.name,
    ...(code === undefined ? {} : { code: String(code) }),
    message,
    // Where a store was found to be away says nothing.
    ...(isStoreAway(error) ? {} : { stack }),
    ...(causes.length === 0 || depth === CAUSES_MAX
      ? {}
      : { causes: causes.slice(0, CAUSES_MAX).map((one: unknown) => errorFields(one, depth + 1)) }),
  };
}

/**
 * Log output: one JSON object per line (pino). No line contains a secret. The number of similar lines per
 * second is limited, so that a fault in every request does not cost more than the requests themselves.
 */
import { type DestinationStream, type Logger, pino } from 'pino';
import { LogOutput } from '../platform/logOutput.js';
import { HIDDEN, withoutSecrets } from '../platform/secretsInLogs.js';

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

/**
 * Opens the log.
 * @param destination stream to write to; default: standard output
 */
export function openLogger(
  { level, secrets }: LoggerOptions,
  destination: DestinationStream = new LogOutput(STANDARD_OUTPUT),
): Logger {
  const limit = new Limit();
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
          limit.say(kindOf(fields, message), (unsaid) => {
            method.apply(this, [unsaid === 0 ? fields : { ...fields, unsaid }, message]);
          });
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

/**
 * Passes on the first log lines of each kind per second at once, and the last line at the end of the second.
 */
class Limit {
  readonly #kinds = new Map<string, { said: number; left: number; last: (unsaid: number) => void }>();
  #timer: NodeJS.Timeout | undefined;

  /** @param line function that writes the line; it gets the number of lines that were suppressed before */
  say(kind: string, line: (unsaid: number) => void): void {
    let known = this.#kinds.get(kind);
    if (known === undefined) {
      known = { said: 0, left: 0, last: line };
      this.#kinds.set(kind, known);
      this.#timer ??= setTimeout(() => this.#turn(), 1000).unref();
    }
    if (known.said < LINES_A_SECOND) {
      known.said++;
      line(0);
    } else {
      known.left++;
      known.last = line;
    }
  }

  #turn(): void {
    this.#timer = undefined;
    const kinds = [...this.#kinds.values()];
    this.#kinds.clear();
    for (const { left, last } of kinds) if (left > 0) last(left - 1);
  }
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
    stack,
    ...(causes.length === 0 || depth === CAUSES_MAX
      ? {}
      : { causes: causes.slice(0, CAUSES_MAX).map((one: unknown) => errorFields(one, depth + 1)) }),
  };
}

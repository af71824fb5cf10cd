/**
 * The log: a JSON object a line (pino). No line holds a secret, and of lines of one kind only some are written a second: a
 * fault that every request meets must not cost more than the requests did.
 */
import { type DestinationStream, type Logger, pino } from 'pino';
import { LogOutput } from '../platform/logOutput.js';
import { HIDDEN, withoutSecrets } from '../platform/secretsInLogs.js';

export interface LoggerOptions {
  readonly level: string;
  /** Texts that no line may have. */
  readonly secrets: readonly string[];
}

/** Lines of one kind in a second; one more at its end says how many were left out. */
const LINES_A_SECOND = 5;

const STANDARD_OUTPUT = 1;

/** @param destination standard output unless told */
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
          // What says that people must act is never left out; what is asked for by LOG_LEVEL=debug neither.
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

/** What is alike: the same fault of any request or cell, the same change of state of one cell. */
function kindOf(fields: object, message: string): string {
  const { err, operation, errorCode, cell } = fields as Record<string, unknown>;
  return `${message}|${operation}|${errorCode}|${err === undefined ? cell : ''}`;
}

/** Hands on the first lines of each kind in a second at once, and at its end the last one. */
class Limit {
  readonly #kinds = new Map<string, { said: number; left: number; last: (unsaid: number) => void }>();
  #timer: NodeJS.Timeout | undefined;

  /** @param line writes it, with the number of lines that were left out before it. */
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

/** Nobody passes them to the log; here in case somebody does. */
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
 * What the log has of an error. Not its other members: a client of Redis puts the command there, with passwords and sealed
 * outcomes among its arguments, one of Postgres the row.
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

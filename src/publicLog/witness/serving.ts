/** Witness server to which logs submit their checkpoints (C2SP tlog-witness). */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { parseCheckpoint } from '../../domain/publicLog/checkpoints.js';
import { NoteError } from '../../domain/publicLog/notes.js';
import type { Policy } from '../../domain/publicLog/policy.js';
import { judgeSubmission, parseSubmission, SIZE_TYPE } from '../../domain/publicLog/submissions.js';
import { nameOf, type WitnessState } from './witnessState.js';

/** Maximum size of a request body in bytes: 63 hashes and a note with a hundred signatures. */
const BODY_MAX = 65_536;
const CONNECTIONS_MAX = 1024;
const WITHIN_MS = 10_000;
const TEXT = 'text/plain; charset=utf-8';

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly type?: string;
}

/** @returns undefined if it is too long */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > BODY_MAX) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

export interface WitnessServer {
  readonly port: number;
  close(): Promise<void>;
}

export interface ServingOptions {
  readonly policy: Policy;
  readonly state: WitnessState;
  readonly host: string;
  readonly port: number;
  readonly say: (line: string) => void;
}

/** Checks a submission and cosigns it if it is valid. */
async function addCheckpoint({ policy, state, say }: ServingOptions, body: string): Promise<Answer> {
  let submission: ReturnType<typeof parseSubmission>;
  let origin: string;
  try {
    submission = parseSubmission(body);
    ({ origin } = parseCheckpoint(submission.parsed.text));
  } catch (error) {
    if (error instanceof NoteError) return { status: 400, body: `${error.message}\n` };
    throw error;
  }
  const keys = policy.logs.filter(({ name }) => name === origin);
  if (keys.length === 0) return { status: 404, body: 'this witness does not know the log\n' };
  return state.inTurn(origin, async () => {
    const newest = await state.newest(origin);
    const judged = judgeSubmission(submission, () => ({ keys, newest: newest?.checkpoint }));
    if ('checkpoint' in judged) {
      const line = await state.cosign(submission.parsed, judged.signers);
      say(`cosigned ${origin} ${judged.checkpoint.size}`);
      return { status: 200, body: line };
    }
    if (judged.isFork) {
      const folder = await state.keepEvidence(origin, newest!.note, submission.note);
      say(
        `${origin} has signed two different trees of ${newest!.checkpoint.size} records; both notes are in ${folder}`,
      );
    }
    if (judged.status === 409)
      return { status: 409, body: `${newest?.checkpoint.size ?? 0}\n`, type: SIZE_TYPE };
    return { status: judged.status, body: `${judged.problem}\n` };
  });
}

async function answerTo(options: ServingOptions, request: IncomingMessage): Promise<Answer> {
  const path = (request.url ?? '').split('?')[0]!;
  if (path.endsWith('/add-checkpoint')) {
    if (request.method !== 'POST') return { status: 405, body: 'use POST\n' };
    const body = await bodyOf(request);
    return body === undefined
      ? { status: 400, body: `the body has more than ${BODY_MAX} bytes\n` }
      : addCheckpoint(options, body);
  }
  const name = /\/([0-9a-f]{64})\/checkpoint$/.exec(path)?.[1];
  const log = options.policy.logs.find((each) => nameOf(each.name) === name);
  const kept = log && (await options.state.newest(log.name));
  if (kept === undefined) return { status: 404, body: 'this witness has no checkpoint of the log\n' };
  return { status: 200, body: kept.note };
}

/** @param options `port` 0 selects a free port */
export async function serveWitness(options: ServingOptions): Promise<WitnessServer> {
  const server: Server = createServer((request: IncomingMessage, response: ServerResponse) => {
    answerTo(options, request)
      .catch((error: unknown): Answer => {
        options.say(`failed: ${(error as Error).message}`);
        return { status: 500, body: 'failed\n' };
      })
      .then(({ status, body, type = TEXT }) => {
        response.writeHead(status, { 'Content-Type': type, 'Cache-Control': 'no-store' }).end(body);
        // The connection is closed, which discards the unread rest of the request body.
        if (!request.complete) request.destroy();
      });
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.requestTimeout = WITHIN_MS;
  server.headersTimeout = WITHIN_MS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  return {
    port: (server.address() as { port: number }).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      }),
  };
}

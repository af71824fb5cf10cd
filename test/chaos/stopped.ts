/**
 * Defines faults that stop a process (SIGSTOP) until the state in its memory is outdated, and then resume it
 * in the middle of its work. Meanwhile a lease expires, a partner moves to another cell and back, or request
 * ids leave Redis.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR_BASE } from '../../src/api/contract/apis.js';
import { OPERATOR_KEY } from '../support/api.js';
import { askOnce, plainRequest, postRequest, spinRequest, type WireAnswer } from '../support/load.js';
import type { Random } from '../support/random.js';
import { ROOT } from '../support/root.js';
import { pause, until } from '../support/wait.js';
import type { Arena, FaultKind } from './faultKind.js';
import { STRANGER } from './records.js';
import type { Service } from './services.js';

/** Range in ms for which no worker runs. It contains the 3 s of a worker's lease. */
const WITHOUT_WORKER_MS = [4000, 7000] as const;
/** Range in ms after which request ids have left Redis, given the REQUEST_ID_WINDOW_S of services.ts. */
const RELEASED_MS = [6000, 9000] as const;
const MOVED_WITHIN_MS = 45_000;
const ANSWER_WITHIN_MS = 2000;
/** Time in ms after which the lease of a stopped worker has expired. */
const LEASE_MS = 3500;

async function stoppedWhile(service: Service, what: () => Promise<void>): Promise<void> {
  service.freeze();
  try {
    await what();
  } finally {
    service.thaw();
  }
}

/** Partners that only these faults use, numbered so that their names differ. */
let strangers = 0;
/** Time after which a change must be in force in every process, in ms (docs/contract.md §3). */
const IN_FORCE_MS = 1000;
/** Requests sent at once, enough for the kernel to give some of them to the stopped process. */
const REQUESTS = 32;
const RAFFLE = {
  ticketPriceUsd: 0.5,
  poolSize: 10_000,
  prizes: [{ prizeName: 'Mug', prizeTier: 1, valueUsd: 1.25, count: 4000 }],
};

/**
 * Sends an operator request until some process answers. Several attempts may be needed, because the kernel
 * also assigns connections to a stopped process.
 */
async function asked<T>(
  { fleet }: Arena,
  path: string,
  body?: object,
  method = body === undefined ? 'GET' : 'POST',
): Promise<{ status: number; body: T }> {
  const to = `${OPERATOR_BASE}${path}`;
  const bytes =
    body === undefined
      ? plainRequest(method, to, OPERATOR_KEY)
      : postRequest(to, OPERATOR_KEY, JSON.stringify(body)).toString('latin1').replace(/^POST/, method);
  let answer: WireAnswer | undefined;
  await until(
    async () => {
      answer = await askOnce(fleet.port, bytes, ANSWER_WITHIN_MS);
      return answer !== undefined && answer.status < 500;
    },
    `an answer to ${path}`,
    MOVED_WITHIN_MS,
  );
  return { status: answer!.status, body: JSON.parse(answer!.text || '{}') as T };
}

/** How a change is made through other front ends, and what must be refused once it is in force. */
interface Restriction {
  readonly what: string;
  make(): Promise<unknown>;
  readonly spin: Buffer;
}

/**
 * Makes a change while a front end is stopped. Requests that are sent once the change must be in force reach
 * the stopped front end, too. None of them may be carried out.
 */
async function refusedAfterPause(
  arena: Arena,
  random: Random,
  { what, make, spin }: Restriction,
): Promise<void> {
  const { port } = arena.fleet;
  const ask = () => askOnce(port, spin, MOVED_WITHIN_MS);
  await until(
    async () => {
      const answers = await Promise.all(Array.from({ length: REQUESTS }, ask));
      return answers.every((answer) => answer?.status === 200);
    },
    `every front end carries out the request before ${what}`,
    MOVED_WITHIN_MS,
  );
  let asking: Promise<WireAnswer | undefined>[] = [];
  await stoppedWhile(random.pick(arena.fleet.fronts), async () => {
    await make();
    await pause(IN_FORCE_MS + random.whole(100, 900));
    asking = Array.from({ length: REQUESTS }, ask);
    // The requests must be in the stopped process's sockets before it goes on.
    await pause(100);
  });
  const carriedOut = (await Promise.all(asking)).filter((answer) => answer?.status === 200).length;
  if (carriedOut > 0)
    throw new Error(
      `${carriedOut} of ${REQUESTS} requests were carried out more than a second after ${what}`,
    );
}

/** Repeats a creation that another fault of the round may refuse. */
async function made<T>(what: string, make: () => Promise<T>): Promise<T> {
  let result: { readonly made: T } | undefined;
  let last: unknown;
  const isMade = async (): Promise<boolean> => {
    try {
      result = { made: await make() };
    } catch (error) {
      last = error;
    }
    return result !== undefined;
  };
  await until(isMade, what, MOVED_WITHIN_MS).catch((error: Error) => {
    throw new Error(`${error.message}: ${String(last)}`, { cause: last });
  });
  return result!.made;
}

async function newStranger({ api }: Arena) {
  const name = `stranger-${++strangers}-${process.pid}`;
  const partner = await api.newPartner(name);
  const sheet = JSON.parse(readFileSync(join(ROOT, 'test', 'par-sheets', 'classic-3-reel.json'), 'utf8')) as {
    denominationUsd: number;
  };
  const gameId = await api.newGame(partner.key, 'classic-3-reel', sheet);
  const spin = (id: number, wagerUsd: number): Buffer =>
    spinRequest(partner.key, JSON.stringify({ gameId: id, playerId: STRANGER, wagerUsd }));
  return { ...partner, gameId, spin, wagerUsd: sheet.denominationUsd };
}

async function restricted(arena: Arena, random: Random): Promise<void> {
  const { partnerId, gameId, spin, wagerUsd } = await made('a stranger', () => newStranger(arena));
  const path = `/partners/${partnerId}`;
  const { keys } = (await asked<{ keys: { keyId: number }[] }>(arena, `${path}/keys`)).body;
  const changes: readonly (readonly [what: string, make: () => Promise<unknown>])[] = [
    ['the revocation of a key', () => asked(arena, `${path}/keys/${keys[0]!.keyId}`, undefined, 'DELETE')],
    ['the suspension of a game', () => asked(arena, `/games/${gameId}`, { status: 'SUSPENDED' }, 'PATCH')],
    ['the deactivation of a partner', () => asked(arena, path, { isActive: false }, 'PATCH')],
    ["the end of a partner's funding", () => asked(arena, path, { fundingUsd: 0 }, 'PATCH')],
  ];
  const [what, make] = random.pick(changes);
  await refusedAfterPause(arena, random, { what, make, spin: spin(gameId, wagerUsd) });
}

async function voided(arena: Arena, random: Random): Promise<void> {
  const { partnerId, spin } = await made('a stranger', () => newStranger(arena));
  let raffles = 0;
  const raffleId = await made('a raffle', () =>
    arena.api.newRaffle(partnerId, `raffle-${++raffles}`, RAFFLE),
  );
  const make = () => asked(arena, `/raffles/${raffleId}/void`, { reason: 'chaos' });
  const what = 'the void of a raffle';
  await refusedAfterPause(arena, random, { what, make, spin: spin(raffleId, RAFFLE.ticketPriceUsd) });
}

async function thereAndBack(arena: Arena, random: Random): Promise<void> {
  const { partnerId } = random.pick(arena.targets);
  const path = `/partners/${partnerId}`;
  const { cell: home } = (await asked<{ cell: number }>(arena, path)).body;
  const { cells } = (await asked<{ cells: { cell: number }[] }>(arena, '/cells')).body;
  const away = random.pick(cells.map(({ cell }) => cell).filter((cell) => cell !== home));
  type Moves = { moves: { toCell: number; finishedAt: string | null }[] };
  for (const cell of [away, home]) {
    const isThere = async (): Promise<boolean> => {
      const [newest] = (await asked<Moves>(arena, `${path}/moves`)).body.moves;
      return newest?.toCell === cell && newest.finishedAt !== null;
    };
    // An error is ignored, because the answer may be lost although the move is in progress.
    await asked(arena, `${path}/move`, { cell });
    await until(isThere, `partner ${partnerId} has moved to cell ${cell}`, MOVED_WITHIN_MS);
  }
}

/**
 * Front ends continue without any worker. Their health must name the cells that nobody owns, and must stop
 * naming them once workers are back.
 */
async function withoutWorkers({ fleet }: Arena, random: Random): Promise<void> {
  await fleet.stop();
  for (const front of fleet.fronts) {
    front.start(fleet.acknowledgement, { ...fleet.more, ROLES: 'http' });
    await until(() => front.isUp, `${front.name} is up without a worker`, MOVED_WITHIN_MS);
  }
  const status = () => askOnce(fleet.port, plainRequest('GET', '/statusz', ''), ANSWER_WITHIN_MS);
  const isNamed = async (): Promise<boolean> =>
    (await status())?.text.includes('No worker is alive') === true;
  await until(isNamed, '/statusz says that no worker owns the cells', MOVED_WITHIN_MS);
  await pause(random.whole(...WITHOUT_WORKER_MS));
  if (!(await isNamed())) throw new Error('/statusz no longer names the cells that no worker owns');
  await fleet.stop();
  await fleet.startAgain();
}

export const STOPPED = {
  'worker-gone': { subject: 'service', run: withoutWorkers },
  'stop-front-restrict': { subject: 'service', run: restricted },
  'stop-front-void': { subject: 'service', run: voided },
  'stop-front-move': {
    subject: 'service',
    run: (arena, random) => stoppedWhile(random.pick(arena.fleet.fronts), () => thereAndBack(arena, random)),
  },
  'stop-worker-move': {
    subject: 'service',
    async run(arena, random) {
      const owner = await arena.fleet.owner();
      await stoppedWhile(owner, async () => {
        await pause(LEASE_MS);
        await thereAndBack(arena, random);
      });
    },
  },
  'stop-front-release': {
    subject: 'service',
    run: ({ fleet }, random) =>
      stoppedWhile(random.pick(fleet.fronts), () => pause(random.whole(...RELEASED_MS))),
  },
  'stop-worker-release': {
    subject: 'service',
    async run({ fleet }, random) {
      await stoppedWhile(await fleet.owner(), () => pause(random.whole(...RELEASED_MS)));
    },
  },
} as const satisfies Record<string, FaultKind>;

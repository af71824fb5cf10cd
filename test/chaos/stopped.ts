/**
 * Defines faults that stop a process (SIGSTOP) until the state in its memory is outdated, and then resume it
 * in the middle of its work. Meanwhile a lease expires, a partner moves to another cell and back, or request
 * ids leave Redis.
 */
import { OPERATOR_BASE } from '../../src/api/contract/apis.js';
import { OPERATOR_KEY } from '../support/api.js';
import { askOnce, plainRequest, postRequest, type WireAnswer } from '../support/load.js';
import type { Random } from '../support/random.js';
import { pause, until } from '../support/wait.js';
import type { Arena, FaultKind } from './faultKind.js';
import type { Service } from './services.js';

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

/**
 * Sends an operator request until some process answers. Several attempts may be needed, because the kernel
 * also assigns connections to a stopped process.
 */
async function asked<T>({ fleet }: Arena, path: string, body?: object): Promise<{ status: number; body: T }> {
  const to = `${OPERATOR_BASE}${path}`;
  const bytes =
    body === undefined
      ? plainRequest('GET', to, OPERATOR_KEY)
      : postRequest(to, OPERATOR_KEY, JSON.stringify(body));
  let answer: WireAnswer | undefined;
  await until(
    async () => {
      answer = await askOnce(fleet.port, bytes, ANSWER_WITHIN_MS);
      return answer !== undefined && answer.status < 500;
    },
    `an answer to ${path}`,
    MOVED_WITHIN_MS,
  );
  return { status: answer!.status, body: JSON.parse(answer!.text) as T };
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

export const STOPPED = {
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

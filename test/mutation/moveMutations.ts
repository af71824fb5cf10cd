/**
 * Deliberate faults in the move of a partner to another cell, and the load under which partners are moved to
 * find them.
 */
import type { Client } from '../support/client.js';
import { portOf } from '../support/load.js';
import type { ServerProcess } from '../support/serverProcess.js';
import { built, lua, type Mutation } from './mutant.js';

export const MOVE_MUTATIONS: readonly Mutation[] = [
  {
    name: 'the old cell deals on for a partner that has left it',
    faults: [lua('include/away', "if find(away, ';' .. partnerId .. ';', 1, true) then return true end", '')],
    found: ['cursors'],
    isMoved: true,
  },
  {
    name: 'request ids stay behind in the cell that a partner has left',
    faults: [
      built('engine/requestIds/requestIds.js', 'if (formerCells === undefined)', 'if (formerCells !== null)'),
    ],
    found: ['requests'],
    isMoved: true,
  },
  {
    name: 'a cell takes the calls of a front end that has not heard of the newest move',
    faults: [lua('include/away', "tonumber(match(away, '^%d+', moveAt + 1)) > knownMove", 'moveAt < 0')],
    found: ['requests'],
    isStopped: true,
  },
];

/** Time limit of a move in ms, because a move may never finish with a fault. */
const FINISHED_WITHIN_MS = 30_000;

/** Moves a partner to a cell and plays repeatedly until the move is finished or its time limit is over. */
export async function moveWhile(
  client: Client,
  partnerId: number,
  cell: number,
  play: (name: string) => Promise<void>,
): Promise<void> {
  const path = `/partners/${partnerId}`;
  const begun = await client.operator('POST', `${path}/move`, { cell });
  if (begun.status !== 202) throw new Error(`The move did not begin: ${begun.text}`);
  type Moves = { moves: { finishedAt: string | null }[] };
  const since = performance.now();
  for (let plays = 0; performance.now() - since < FINISHED_WITHIN_MS; plays++) {
    await play(`moving-${plays}`);
    const { body } = await client.operator<Moves>('GET', `${path}/moves`);
    if (body.moves[0]!.finishedAt !== null) return;
  }
}

/**
 * Moves a partner to another cell and back while a front end is paused. Then sends that front end the
 * requests that the partner sent in the other cell.
 */
export async function moveWhileStopped(
  client: Client,
  partnerId: number,
  play: (name: string, port?: number) => Promise<void>,
  start: () => Promise<ServerProcess>,
): Promise<void> {
  const other = await start();
  try {
    const port = portOf(other.client.base);
    await play('known', port);
    other.freeze();
    await moveWhile(client, partnerId, 1, play);
    await play('between');
    await moveWhile(client, partnerId, 0, async () => {});
    const again = play('between', port);
    other.thaw();
    await again;
  } finally {
    await other.end('SIGKILL');
  }
}

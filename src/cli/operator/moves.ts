/** Moves partners to other cells by calls of the operator API, and waits for the moves to finish. */
import { setTimeout as pause } from 'node:timers/promises';
import { bodyOf, type OperatorClient } from '../../api/client/apiClients.js';
import { lineOf } from '../../platform/secretsInLogs.js';
import type { Schemas } from './call.js';

const LOOK_MS = 200;
/**
 * Number of moves that a drain runs at the same time. Each move waits for a while before the partner's data
 * in the old cell is cleared.
 */
const MOVES_AT_ONCE = 4;

type Move = Schemas['PartnerMove'];
type Reason = Pick<Schemas['MoveBody'], 'reason'>;

/** @throws Error if the move was abandoned; SpindleError if it was refused */
export async function moveAndWait(
  client: OperatorClient,
  id: number,
  cell: number,
  reason: Reason = {},
): Promise<Move> {
  const params = { path: { id } };
  const body = { cell, ...reason };
  return finished(client, await bodyOf(client.POST('/partners/{id}/move', { params, body })));
}

async function finished(client: OperatorClient, begun: Move): Promise<Move> {
  let move = begun;
  const params = { path: { id: move.partnerId } };
  while (move.finishedAt === null) {
    await pause(LOOK_MS);
    const { moves } = await bodyOf(client.GET('/partners/{id}/moves', { params }));
    move = moves.find(({ moveId }) => moveId === move.moveId) ?? move;
  }
  if (move.failure !== null) throw new Error(`The move was abandoned: ${move.failure}`);
  return move;
}

/**
 * Moves all partners of a draining cell, each to the cell with the fewest partners at that time. Can be
 * repeated; a repetition waits for moves in progress.
 * @param onMoved called for each moved partner
 * @throws Error that names the partners that could not be moved, after all other partners were moved
 */
export async function movePartnersOff(
  client: OperatorClient,
  cell: number,
  reason: Reason,
  onMoved: (slug: string, toCell: number) => void,
): Promise<void> {
  const { partners } = await bodyOf(client.GET('/partners'));
  const due = partners.filter((partner) => partner.cell === cell);
  const failures: string[] = [];
  const to = new Targets(client);
  const line = async (): Promise<void> => {
    for (let partner = due.shift(); partner !== undefined; partner = due.shift()) {
      const { partnerId, slug } = partner;
      try {
        const { moves } = await bodyOf(
          client.GET('/partners/{id}/moves', { params: { path: { id: partnerId } } }),
        );
        const open = moves.find(({ finishedAt }) => finishedAt === null);
        const before = open === undefined ? undefined : await finished(client, open);
        const move =
          before === undefined || before.toCell === cell
            ? await to.with((target) => moveAndWait(client, partnerId, target, reason))
            : before;
        onMoved(slug, move.toCell);
      } catch (error) {
        failures.push(`${slug}: ${lineOf(error)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: MOVES_AT_ONCE }, line));
  if (failures.length > 0)
    throw new Error(`Some partners were not moved. Run the command again. ${failures.join('; ')}`);
}

/** Target cells of moves in progress, with the number of arriving partners. */
class Targets {
  readonly #coming = new Map<number, number>();

  constructor(private readonly client: OperatorClient) {}

  /**
   * Runs a move to the cell with the fewest partners. Partners on their way to a cell count as partners of
   * that cell.
   * @param move receives the target cell
   * @throws Error if no cell accepts partners
   */
  async with<T>(move: (cell: number) => Promise<T>): Promise<T> {
    const { cells } = await bodyOf(this.client.GET('/cells'));
    const load = ({ cell, partners }: { cell: number; partners: number }): number =>
      partners + (this.#coming.get(cell) ?? 0);
    const [to] = cells
      .filter(({ isDraining, halted }) => !isDraining && halted === null)
      .sort((a, b) => load(a) - load(b));
    if (to === undefined) throw new Error('No other cell accepts partners');
    this.#coming.set(to.cell, (this.#coming.get(to.cell) ?? 0) + 1);
    try {
      return await move(to.cell);
    } finally {
      this.#coming.set(to.cell, this.#coming.get(to.cell)! - 1);
    }
  }
}

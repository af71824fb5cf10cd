/** Moves a partner over the operator API, and waits until it is done. */
import { setTimeout as pause } from 'node:timers/promises';
import { bodyOf, type OperatorClient } from '../../client/client.js';
import type { Schemas } from './call.js';

const LOOK_MS = 200;

/** @throws Error where the move was given up; SpindleError where it was refused */
export async function moveAndWait(
  client: OperatorClient,
  id: number,
  cell: number,
): Promise<Schemas['PartnerMove']> {
  const params = { path: { id } };
  let move = await bodyOf(client.POST('/partners/{id}/move', { params, body: { cell } }));
  while (move.finishedAt === null) {
    await pause(LOOK_MS);
    const { moves } = await bodyOf(client.GET('/partners/{id}/moves', { params }));
    move = moves.find(({ moveId }) => moveId === move.moveId) ?? move;
  }
  if (move.failure !== null) throw new Error(`The move was given up: ${move.failure}`);
  return move;
}

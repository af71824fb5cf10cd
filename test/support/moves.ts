/** Moves a partner to another cell, and waits until the move is complete. */
import { expect } from 'vitest';
import type { Client } from './client.js';
import { until } from './wait.js';

interface Moves {
  readonly moves: readonly {
    readonly switchedAt: string | null;
    readonly finishedAt: string | null;
    readonly failure: string | null;
  }[];
}

export async function movePartner(client: Client, partnerId: number, cell: number): Promise<void> {
  const begun = await client.operator('POST', `/partners/${partnerId}/move`, { cell });
  expect(begun.status, begun.text).toBe(202);
  const newest = async () =>
    (await client.operator<Moves>('GET', `/partners/${partnerId}/moves`)).body.moves[0]!;
  await until(async () => (await newest()).switchedAt !== null, 'the partner is switched');
  await until(async () => (await newest()).finishedAt !== null, 'the move is finished');
  expect((await newest()).failure).toBe(null);
}

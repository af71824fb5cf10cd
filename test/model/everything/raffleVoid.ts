/**
 * Command of the operator that voids the raffle: it sells no further ticket, and each sold ticket is refunded
 * once.
 */
import fc from 'fast-check';
import { at, type Json } from '../decimal.js';
import { type Command, NOTHING, pathPart } from './command.js';
import { type Session, same } from './session.js';
import { book, type Game, playerOf, type State } from './state.js';

const gameOf = (state: State): Game | undefined => state.games.find(({ kind }) => kind === 'raffle');

export const voidRaffle: Command<null> = {
  name: 'void raffle',
  weight: 1,
  arbitrary: () => fc.constant(null),
  applies: (state) => gameOf(state) !== undefined,
  async run(session, state) {
    const game = gameOf(state)!;
    const path = `/raffles/${game.gameId}/void`;
    const send = () => session.operator('POST', path, { reason: 'model' });
    const reply = await send();
    if (game.ticketsLeft === 0 && !game.isVoided) {
      session.expect(reply, 'void', '410 KS-4218');
      return NOTHING;
    }
    session.expect(reply, 'void', '200');
    const tickets = state.spins.filter(({ gameId }) => gameId === game.gameId);
    let done: Json | undefined;
    await session.awaited('the tickets are refunded', async () => {
      done = (await send()).json;
      return at(done, 'isDone') === true ? undefined : JSON.stringify(done);
    });
    const count = String(tickets.length);
    same('the tickets', [at(done, 'tickets'), at(done, 'refunded'), at(done, 'failed')], [count, count, '0']);
    if (game.isVoided) {
      session.saw('void repeated');
      return NOTHING;
    }
    game.isVoided = true;
    game.isSuspended = false;
    game.ticketsLeft = 0;
    const refunded = await refundsOf(session, [...new Set(tickets.map(({ playerId }) => playerId))]);
    const wanted = tickets.map(({ spinId }) => `raffle-void:${game.gameId}:${spinId}`);
    same('the refunds', refunded.map(({ requestId }) => requestId).sort(), wanted.sort());
    for (const { playerId, requestId } of refunded) {
      book(playerOf(state, playerId), { kind: 'adjustment', credit: game.wager, requestId });
      state.adjustments += game.wager;
    }
    return { players: [...new Set(refunded.map(({ playerId }) => playerId))], games: [game.gameId] };
  },
};

interface Refund {
  readonly playerId: string;
  readonly entryId: bigint;
  readonly requestId: string;
}

/** Returns the refunds of players in the order of the ledger. The service may choose the order. */
async function refundsOf(session: Session, players: readonly string[]): Promise<Refund[]> {
  const refunds: Refund[] = [];
  for (const playerId of players) {
    const path = `/partners/${session.partner.partnerId}/players/${pathPart(playerId)}/statement?limit=100`;
    for (let cursor = ''; ; ) {
      const { json } = await session.operator('GET', path + cursor);
      for (const entry of at(json, 'entries') as readonly Json[]) {
        const requestId = at(entry, 'requestId');
        if (typeof requestId === 'string' && requestId.startsWith('raffle-void:'))
          refunds.push({ playerId, requestId, entryId: BigInt(String(at(entry, 'entryId'))) });
      }
      const next = at(json, 'nextCursor');
      if (typeof next !== 'string') break;
      cursor = `&cursor=${next}`;
    }
  }
  return refunds.sort((a, b) => (a.entryId < b.entryId ? -1 : 1));
}

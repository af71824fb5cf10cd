/**
 * Commands of the operator (adjustments, blocked players, suspended games, keys, moves), and commands that
 * restart the service or release request ids.
 */
import fc from 'fast-check';
import { amount, at, usd } from '../decimal.js';
import { type Command, NOTHING, PLAYERS, pathPart, pick, type Touched } from './command.js';
import { Difference, type Reply, type Session, same } from './session.js';
import { requestId } from './spins.js';
import { balanceOf, book, playerOf, type State } from './state.js';

interface Adjustment {
  readonly playerId: string;
  readonly micros: number;
  readonly requestId: string;
}

export const adjust: Command<Adjustment> = {
  name: 'adjust',
  weight: 3,
  arbitrary: () =>
    fc.record({
      playerId: fc.constantFrom(...PLAYERS),
      micros: fc.constantFrom(1, 250_000, 5_000_001, -1, -250_000, -2_000_000),
      requestId,
    }),
  applies: () => true,
  async run(session, state, { playerId, micros, requestId: id }) {
    const path = `/partners/${session.partner.partnerId}/players/${pathPart(playerId)}/adjustments`;
    const value = BigInt(micros);
    const body = { amountUsd: Number(usd(value)), reason: 'model', requestId: id };
    const reply = await session.operator('POST', path, body);
    const request = `${playerId} ${micros}`;
    const bound = state.adjusted.get(id);
    if (bound !== undefined) {
      session.expect(reply, 'adjust', bound.request === request ? '200' : '409 KS-4111');
      if (bound.request !== request) return NOTHING;
      session.saw('adjust replayed');
      same('a repeated adjustment has the bytes of the first answer', reply.text, bound.text);
      return NOTHING;
    }
    if (state.isEnforced && value < 0n && balanceOf(state, playerId) + value < 0n) {
      session.expect(reply, 'adjust', '400 KS-4225');
      return NOTHING;
    }
    session.expect(reply, 'adjust', '200');
    book(playerOf(state, playerId), { kind: 'adjustment', credit: value, requestId: id });
    same('the balance', amount(at(reply.json, 'balanceUsd')), balanceOf(state, playerId));
    state.adjustments += value;
    state.adjusted.set(id, { request, status: 200, text: reply.text });
    return { players: [playerId], games: [] };
  },
};

interface Blocking {
  readonly playerId: string;
  /** True to choose a known player, if there is one. */
  readonly isKnown: boolean;
  readonly isBlocked: boolean;
}

export const blockPlayer: Command<Blocking> = {
  name: 'block player',
  weight: 2,
  arbitrary: () =>
    fc.record({
      playerId: fc.constantFrom(...PLAYERS),
      isKnown: fc.constantFrom(true, true, true, false),
      isBlocked: fc.constantFrom(true, true, false),
    }),
  applies: () => true,
  async run(session, state, { isKnown, isBlocked, ...choice }) {
    const known = [...state.players.keys()];
    const playerId = (isKnown && pick(known, PLAYERS.indexOf(choice.playerId as 'd'))) || choice.playerId;
    const path = `/partners/${session.partner.partnerId}/players/${pathPart(playerId)}`;
    const body = { status: isBlocked ? 'BLOCKED' : 'ACTIVE', reason: 'model' };
    const reply = await session.operator('PATCH', path, body);
    const player = state.players.get(playerId);
    session.expect(reply, 'block', player === undefined ? '404 KS-4204' : '200');
    if (player === undefined) return NOTHING;
    player.isBlocked = isBlocked;
    same('the status', at(reply.json, 'status'), body.status);
    return { players: [playerId], games: [] };
  },
};

/**
 * Blocks the newest player, or unblocks it, while Redis refuses every write. The service records the change
 * and carries it out later.
 */
export async function blockRefused(session: Session, state: State): Promise<Touched> {
  const player = [...state.players.values()].at(-1);
  if (player === undefined) return NOTHING;
  const status = player.isBlocked ? 'ACTIVE' : 'BLOCKED';
  const path = `/partners/${session.partner.partnerId}/players/${pathPart(player.playerId)}`;
  const reply = await session.operator('PATCH', path, { status, reason: 'model' });
  session.expect(reply, 'block refused by Redis', '202');
  same('the change is in force', at(reply.json, 'isInForce'), false);
  player.isBlocked = !player.isBlocked;
  return { players: [player.playerId], games: [] };
}

/** Waits until the status of each player is in force. */
export async function blocksAreInForce(session: Session, state: State): Promise<void> {
  for (const { playerId, isBlocked } of state.players.values())
    await session.awaited('a recorded change of a player is in force', async () => {
      const { json } = await session.partnerApi('GET', `/players/${pathPart(playerId)}`);
      return differs(String(at(json, 'status')), isBlocked ? 'BLOCKED' : 'ACTIVE');
    });
}

/** The service records changes while Redis refuses writes, for all sequences that are played at the time. */
export const refusal: Command<null> = {
  name: 'refusal',
  weight: 3,
  arbitrary: () => fc.constant(null),
  applies: () => true,
  async run(session, state) {
    await session.world.refusing(() => blockRefused(session, state));
    await blocksAreInForce(session, state);
    session.saw('refusal');
    return everyone(state);
  },
};

interface Suspension {
  readonly game: number;
  readonly isSuspended: boolean;
}

export const suspendGame: Command<Suspension> = {
  name: 'suspend game',
  weight: 2,
  arbitrary: () => fc.record({ game: fc.nat(2), isSuspended: fc.boolean() }),
  applies: () => true,
  async run(session, state, choice) {
    const game = pick(state.games, choice.game)!;
    const status = choice.isSuspended ? 'SUSPENDED' : 'ACTIVE';
    const reply = await session.operator('PATCH', `/games/${game.gameId}`, { status });
    const isClosed = game.kind === 'raffle' && game.ticketsLeft === 0;
    session.expect(reply, 'suspend', isClosed ? '410 KS-4218' : '200');
    if (isClosed) return NOTHING;
    game.isSuspended = choice.isSuspended;
    // The change is in force within one second. A request that deals nothing reveals whether the change is in
    // force.
    const body = { gameId: game.gameId, playerId: 'nobody', wagerUsd: Number(usd(game.wager * 2n)) };
    const path = game.kind === 'blackjack' ? '/deal' : '/spin';
    const send = (): Promise<Reply> =>
      game.kind === 'blackjack' ? session.play('POST', path, body) : session.partnerApi('POST', path, body);
    await session.awaited('a changed status is in force', async () => {
      const code = at((await send()).json, 'errorCode');
      const wanted = game.isSuspended ? 'KS-4202' : 'KS-4103';
      return code === wanted ? undefined : `${String(code)} in place of ${wanted}`;
    });
    return { players: [], games: [game.gameId] };
  },
};

/** Checks that a new key works, and that once it is revoked only the partner's other key works. */
export const rotateKey: Command<null> = {
  name: 'rotate key',
  weight: 1,
  arbitrary: () => fc.constant(null),
  applies: () => true,
  async run(session, state) {
    const path = `/partners/${session.partner.partnerId}/keys`;
    const issued = await session.operator('POST', path, {});
    session.expect(issued, 'issue key', '201');
    const key = String(at(issued.json, 'apiKey'));
    const code = async (of: string): Promise<string> => {
      const { json, status } = await session.partnerApi('GET', '/version', undefined, {}, of);
      return String(at(json, 'errorCode') ?? status);
    };
    await session.awaited('a new key is in force', async () => differs(await code(key), '200'));
    const revoked = await session.operator('DELETE', `${path}/${String(at(issued.json, 'keyId'))}`);
    session.expect(revoked, 'revoke key', '204');
    await session.awaited('a revoked key is refused', async () => differs(await code(key), 'KS-4003'));
    state.revoked.push(key);
    for (const each of state.revoked) same('a revoked key', await code(each), 'KS-4003');
    same('the other key', await code(session.partner.key), '200');
    return NOTHING;
  },
};

const differs = (found: string, wanted: string): string | undefined =>
  found === wanted ? undefined : `${found} in place of ${wanted}`;

const CELLS = 4;

/** Waits until a partner's newest move has reached the given time. Returns at once if there is no move. */
export async function moveHas(session: Session, time: 'switchedAt' | 'finishedAt'): Promise<void> {
  if (!session.isMoving) return;
  const path = `/partners/${session.partner.partnerId}/moves`;
  await session.awaited(`the move has its ${time}`, async () => {
    const move = at((await session.operator('GET', path)).json, 'moves', 0);
    if (move === undefined || typeof at(move, time) === 'string') return undefined;
    const failure = at(move, 'failure');
    if (typeof failure === 'string') throw new Difference(`the move failed: ${failure}`);
    return JSON.stringify(move);
  });
  session.isMoving = time !== 'finishedAt';
}

/** Moves the partner to another cell. Everything that the service returns must stay the same. */
export const movePartner: Command<number> = {
  name: 'move partner',
  weight: 1,
  arbitrary: () => fc.integer({ min: 1, max: 3 }),
  applies: () => true,
  async run(session, state, choice) {
    const { partnerId } = session.partner;
    await moveHas(session, 'finishedAt');
    const before = await session.operator('GET', `/partners/${partnerId}`);
    const cell = (Number(at(before.json, 'cell')) + choice) % CELLS;
    const begun = await session.operator('POST', `/partners/${partnerId}/move`, { cell });
    session.expect(begun, 'move', '202');
    session.isMoving = true;
    // A move discards pending choices (docs/requests.md).
    state.forced.clear();
    // The following commands of the sequence are sent while the move continues.
    await moveHas(session, 'switchedAt');
    return everyone(state);
  },
};

export const everyone = (state: State): Touched => ({
  players: [...state.players.keys()],
  games: state.games.map(({ gameId }) => gameId),
});

/**
 * Restarts the service. Everything that it returns must stay the same. The restart affects all sequences that
 * are played at the time (run.ts).
 */
export const restart: Command<null> = {
  name: 'restart',
  weight: 3,
  arbitrary: () => fc.constant(null),
  applies: () => true,
  async run(session, state) {
    await session.world.restart();
    session.saw('restart');
    return everyone(state);
  },
};

/**
 * Waits until Redis has released all request ids to the ledger. Everything that the service returns must stay
 * the same.
 */
export const segmentRelease: Command<null> = {
  name: 'release',
  weight: 3,
  arbitrary: () => fc.constant(null),
  applies: () => true,
  async run(session: Session, state) {
    await session.world.requestIds();
    session.saw('release');
    return everyone(state);
  },
};

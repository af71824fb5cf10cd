/** What every read must say, by the reference. */
import { bonusText } from '../communal.js';
import { amount, at, type Json, numbersAsText, usd } from '../decimal.js';
import { pathPart, type Touched } from './command.js';
import { HEADER, rowOf } from './csv.js';
import { type Session, unlike } from './session.js';
import { compareReports } from './settlement.js';
import type { Entry, Game, PlayerState, Spin, State } from './state.js';

/** Compares what a command can have changed. */
export async function compareTouched(session: Session, state: State, touched: Touched): Promise<void> {
  for (const playerId of touched.players) await comparePlayer(session, state, state.players.get(playerId)!);
  for (const gameId of touched.games) {
    await compareGame(session, state.games.find((game) => game.gameId === gameId)!);
  }
  if (touched.players.length > 0) {
    await compareByTime(session, state);
    await compareFeed(session, state);
  }
}

/** Compares everything there is to read. */
export async function compareAll(session: Session, state: State): Promise<void> {
  const players = [...state.players.keys()];
  await compareTouched(session, state, { players, games: state.games.map(({ gameId }) => gameId) });
  for (const spin of state.spins) await compareSpin(session, spin);
  await compareReports(session, state);
}

/** As it was answered, with what a list adds. */
const spinAs = (spin: Json): string => {
  const { createdAt, gameId, playerId, ...answered } = spin as Record<string, Json>;
  return JSON.stringify(answered);
};

const list = (json: Json | undefined, name: string): readonly Json[] =>
  (at(json, name) ?? []) as readonly Json[];

async function comparePlayer(session: Session, state: State, player: PlayerState): Promise<void> {
  const path = `/players/${pathPart(player.playerId)}`;
  await session.compare(`GET ${path}`, async () => {
    const { json } = await session.partnerApi('GET', path);
    return unlike(
      [at(json, 'playerId'), amount(at(json, 'balanceUsd')), at(json, 'status')],
      [player.playerId, player.balance, player.isBlocked ? 'BLOCKED' : 'ACTIVE'],
    );
  });
  await session.compare(`GET ${path}/spins`, async () => {
    const { json } = await session.partnerApi('GET', `${path}/spins?limit=100`);
    const found = list(json, 'spins').map((spin) => `${String(at(spin, 'gameId'))} ${spinAs(spin)}`);
    const wanted = player.spins.map((spin) => `${spin.gameId} ${spinAs(parsed(spin))}`).reverse();
    return unlike([at(json, 'total'), found], [String(wanted.length), wanted]);
  });
  await session.compare(`GET ${path}/community-bonuses`, async () => {
    const { json } = await session.partnerApi('GET', `${path}/community-bonuses?limit=100`);
    const wanted = player.shares.map(({ event, amount: share, isTrigger, toldBy }) => [
      ...[String(event.gameId), String(event.level), event.name, bonusText(share), isTrigger, toldBy],
    ]);
    const found = list(json, 'bonuses').map((bonus) =>
      ['gameId', 'tierLevel', 'tierName', 'amountUsd', 'isTriggerPlayer', 'toldBySpinId'].map((name) =>
        at(bonus, name),
      ),
    );
    return unlike(found, wanted.reverse());
  });
  const { partnerId } = session.partner;
  await session.compare(`the statement of ${player.playerId}`, async () => {
    const { json } = await session.operator(
      'GET',
      `/partners/${partnerId}/players/${pathPart(player.playerId)}/statement?limit=100`,
    );
    const wanted = player.entries.map(entryText).reverse();
    const found = list(json, 'entries')
      .filter((entry) => at(entry, 'kind') !== 'opening')
      .map((entry) => entryText(entryIn(entry)));
    return unlike([amount(at(json, 'balanceUsd')), found], [player.balance, wanted]);
  });
  if (state.games.some(({ kind }) => kind === 'blackjack')) await compareRounds(session, player);
}

const parsed = ({ text }: Spin): Json => numbersAsText(text);

const entryText = ({ kind, gameId, wager, credit, balance, requestId, spinId }: Entry): string =>
  `${kind} ${gameId} −${usd(wager)} +${usd(credit)} = ${usd(balance)} ${requestId} ${spinId}`;

const entryIn = (entry: Json): Entry => ({
  kind: String(at(entry, 'kind')),
  gameId: at(entry, 'gameId') as number | null,
  wager: amount(at(entry, 'wagerUsd'))!,
  credit: amount(at(entry, 'creditUsd'))!,
  balance: amount(at(entry, 'balanceUsd'))!,
  requestId: at(entry, 'requestId') as string | null,
  spinId: at(entry, 'spinId') as string | null,
});

async function compareRounds(session: Session, player: PlayerState): Promise<void> {
  const path = `/rounds?playerId=${encodeURIComponent(player.playerId)}&limit=100`;
  await session.compare(`GET ${path}`, async () => {
    const { json } = await session.play('GET', path);
    const found = list(json, 'rounds').map((round) =>
      [
        ...['roundId', 'status', 'lastActionSeq'].map((name) => String(at(round, name))),
        ...['wageredUsd', 'payoutUsd'].map((name) => amount(at(round, name)) ?? null),
        (at(round, 'actions') as readonly string[]).map(actionName).join(' '),
      ].join(' '),
    );
    const wanted = player.rounds.map((round) =>
      [
        ...[round.roundId, round.status, round.lastActionSeq, round.wagered, round.payout],
        round.actions.join(' '),
      ].join(' '),
    );
    return unlike(found, wanted.reverse());
  });
}

const actionName = (action: Json): string =>
  typeof action === 'string' ? action : String(at(action, 'action'));

async function compareGame(session: Session, game: Game): Promise<void> {
  const path = `/games/${game.gameId}`;
  await session.compare(`GET ${path}`, async () => {
    const { json } = await session.operator('GET', path);
    const { spins, wagered, paid } = game.totals;
    const isSoldOut = game.kind === 'raffle' && game.ticketsLeft === 0;
    const status = isSoldOut ? 'CLOSED' : game.isSuspended ? 'SUSPENDED' : 'ACTIVE';
    return unlike(
      [
        ...[at(json, 'status'), at(json, 'totals', 'spins'), at(json, 'queue', 'consumed')],
        ...[amount(at(json, 'totals', 'wageredUsd')), amount(at(json, 'totals', 'paidOutUsd'))],
      ],
      [status, String(spins), String(spins), wagered, paid],
    );
  });
  const { pot } = game;
  if (pot === undefined) return;
  await session.compare(`GET ${path}/communal`, async () => {
    const { json } = await session.operator('GET', `${path}/communal`);
    const found = ['version', 'progress', 'budgetUsd', 'paidUsd'].map((name) => at(json, name));
    const wanted = [String(pot.version), String(pot.progress), bonusText(pot.budget), bonusText(pot.paid)];
    return unlike(found, wanted);
  });
  await session.compare(`GET ${path}/communal/events`, async () => {
    const { json } = await session.operator('GET', `${path}/communal/events?limit=100`);
    const found = list(json, 'events').map((event) => [
      ...['tierLevel', 'tierName', 'totalAmountUsd', 'winners', 'status'].map((name) => at(event, name)),
      ...list(event, 'shares').map(
        (share) => `${String(at(share, 'playerId'))} ${String(at(share, 'amountUsd'))}`,
      ),
    ]);
    const wanted = pot.events.map(({ level, name, total, isSkipped, shares }) => [
      ...[String(level), name, bonusText(total), String(shares.length)],
      isSkipped ? 'SKIPPED_BUDGET' : 'PAID',
      ...shares.map(({ playerId, amount: share }) => `${playerId} ${bonusText(share)}`),
    ]);
    return unlike(found, wanted.reverse());
  });
}

/** The account's spins by time: as JSON, and as CSV, which says the same. */
async function compareByTime(session: Session, state: State): Promise<void> {
  const day = 86_400_000;
  const [from, to] = [-1, 1].map((days) => new Date(Date.now() + days * day).toISOString());
  const wagers = new Map(state.games.map(({ gameId, wager }) => [String(gameId), wager]));
  await session.compare('GET /spins', async () => {
    const found: Json[] = [];
    for (let cursor: Json | undefined = ''; typeof cursor === 'string'; ) {
      const more: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const { json } = await session.partnerApi('GET', `/spins?from=${from}&to=${to}&limit=100${more}`);
      found.push(...list(json, 'spins'));
      cursor = at(json, 'nextCursor');
    }
    const shown = found.map((spin) => `${String(at(spin, 'playerId'))} ${spinAs(spin)}`);
    const differs = unlike(
      shown,
      state.spins.map((spin) => `${spin.playerId} ${spinAs(parsed(spin))}`),
    );
    if (differs !== undefined) return differs;
    const accept = { Accept: 'text/csv' };
    const csv = await session.partnerApi('GET', `/spins?from=${from}&to=${to}`, undefined, accept);
    const rows = found.map((spin) => rowOf(spin, shortest(wagers.get(String(at(spin, 'gameId')))!)));
    return unlike(csv.text.trim().split(/\r?\n/), [HEADER, ...rows]);
  });
}

/** As JSON writes it. */
const shortest = (micros: bigint): string => usd(micros).replace(/\.?0+$/, '');

async function compareFeed(session: Session, state: State): Promise<void> {
  await session.compare('GET /events', async () => {
    const { json } = await session.partnerApi('GET', '/events?limit=100');
    const found = list(json, 'events')
      .filter((event) => at(event, 'event') === 'spin.large_win')
      .map((event) => [
        at(event, 'data', 'spinId') ?? at(event, 'data', 'roundId'),
        ...['gameId', 'playerId'].map((name) => at(event, 'data', name)),
        amount(at(event, 'data', 'payoutUsd')),
      ]);
    const wanted = state.largeWins.map((win) => [win.id, String(win.gameId), win.playerId, win.payout]);
    return unlike(found, wanted);
  });
}

async function compareSpin(session: Session, spin: Spin): Promise<void> {
  await session.compare(`GET /spins/${spin.spinId}`, async () => {
    const { json } = await session.partnerApi('GET', `/spins/${spin.spinId}`);
    if (json === undefined) return 'no answer';
    return unlike(
      [String(at(json, 'playerId')), String(at(json, 'gameId')), spinAs(json)],
      [spin.playerId, String(spin.gameId), spinAs(parsed(spin))],
    );
  });
}

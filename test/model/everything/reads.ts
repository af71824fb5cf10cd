/** Compares the responses of every read operation of the service with the reference. */
import { bonusText } from '../communal.js';
import { amount, at, type Json, numbersAsText, usd } from '../decimal.js';
import { historyFault, withoutHistory } from '../history.js';
import { pathPart, type Touched } from './command.js';
import { HEADER, rowOf } from './csv.js';
import { Difference, type Reply, type Session, unlike } from './session.js';
import { compareReports } from './settlement.js';
import type { Entry, Game, PlayerState, Pot, Spin, State } from './state.js';

type Read = () => Promise<void>;

/**
 * Compares what the service returns about data that a command may have changed: the balance of each player,
 * and one of the other read operations in turn, or all of them if the service was started with `--thorough`.
 */
export async function compareTouched(session: Session, state: State, touched: Touched): Promise<void> {
  const players = touched.players.map((playerId) => state.players.get(playerId)!);
  for (const player of players) await compareBalance(session, player);
  const reads = [
    ...players.flatMap((player) => readsOfPlayer(session, state, player)),
    ...touched.games.flatMap((gameId) =>
      readsOfGame(session, state, state.games.find((game) => game.gameId === gameId)!),
    ),
    ...(players.length > 0 ? [() => compareByTime(session, state), () => compareFeed(session, state)] : []),
  ];
  if (reads.length === 0) return;
  if (session.world.isThorough) for (const read of reads) await read();
  else await reads[session.turn++ % reads.length]!();
}

/** Number of spins of a sequence that are read by their ids, besides the forced spins. */
const LOOKED_UP = 3;

export async function compareAll(session: Session, state: State): Promise<void> {
  for (const player of state.players.values()) {
    await compareBalance(session, player);
    for (const read of readsOfPlayer(session, state, player)) await read();
  }
  for (const game of state.games) for (const read of readsOfGame(session, state, game)) await read();
  await compareFeed(session, state);
  await compareExport(session, state, await compareByTime(session, state));
  const every = session.world.isThorough ? 1 : Math.ceil(state.spins.length / LOOKED_UP);
  for (const [place, spin] of state.spins.entries()) {
    if (spin.isForced || place % every === 0) await compareSpin(session, spin);
  }
  await compareReports(session, state);
}

function readsOfPlayer(session: Session, state: State, player: PlayerState): Read[] {
  return [
    () => compareHistory(session, state, player),
    () => compareStatement(session, state, player),
    ...(player.rounds.length > 0 ? [() => compareRounds(session, state, player)] : []),
    ...(player.shares.length > 0 ? [() => compareShares(session, state, player)] : []),
  ];
}

function readsOfGame(session: Session, state: State, game: Game): Read[] {
  return [
    () => compareGame(session, game),
    ...(game.pot === undefined ? [] : [() => comparePot(session, state, game, game.pot!)]),
  ];
}

async function allPages(
  limit: number,
  name: string,
  ask: (query: string) => Promise<Reply>,
): Promise<{ readonly total: number; readonly rows: readonly Json[] }> {
  const rows: Json[] = [];
  for (let page = 1; ; page++) {
    const { json, status, text } = await ask(`page=${page}&limit=${limit}`);
    if (status !== 200) throw new Difference(`A list is answered ${status} ${text}`);
    const some = list(json, name);
    rows.push(...some);
    const total = Number(at(json, 'total'));
    if (some.length < limit || rows.length >= total) return { total, rows };
  }
}

async function allFrom(
  limit: number,
  name: string,
  cursorName: string,
  ask: (query: string) => Promise<Reply>,
): Promise<Json[]> {
  const rows: Json[] = [];
  for (let cursor: Json | undefined = ''; typeof cursor === 'string'; ) {
    const more: string = cursor === '' ? '' : `&${cursorName}=${cursor}`;
    const { json, status, text } = await ask(`limit=${limit}${more}`);
    if (status !== 200) throw new Difference(`A list is answered ${status} ${text}`);
    rows.push(...list(json, name));
    cursor = at(json, 'nextCursor');
  }
  return rows;
}

/** Returns a spin of a list in the form of the response to the spin, without the fields that lists add. */
const spinAs = (spin: Json): string => {
  const { createdAt, gameId, playerId, ...shown } = spin as Record<string, Json>;
  return JSON.stringify(withoutHistory(shown));
};

const list = (json: Json | undefined, name: string): readonly Json[] =>
  (at(json, name) ?? []) as readonly Json[];

const pathOf = ({ playerId }: PlayerState): string => `/players/${pathPart(playerId)}`;

async function compareBalance(session: Session, player: PlayerState): Promise<void> {
  const path = pathOf(player);
  await session.compare(`GET ${path}`, async () => {
    const { json } = await session.partnerApi('GET', path);
    return unlike(
      [at(json, 'playerId'), amount(at(json, 'balanceUsd')), at(json, 'status')],
      [player.playerId, player.balance, player.isBlocked ? 'BLOCKED' : 'ACTIVE'],
    );
  });
}

async function compareHistory(session: Session, { pageSize }: State, player: PlayerState): Promise<void> {
  const path = `${pathOf(player)}/spins`;
  await session.compare(`GET ${path}`, async () => {
    const { total, rows } = await allPages(pageSize, 'spins', (query) =>
      session.partnerApi('GET', `${path}?${query}`),
    );
    const found = rows.map((spin) => `${String(at(spin, 'gameId'))} ${spinAs(spin)}`);
    const wanted = player.spins.map((spin) => `${spin.gameId} ${spinAs(parsed(spin))}`).reverse();
    return unlike([total, found], [wanted.length, wanted]);
  });
}

async function compareShares(session: Session, { pageSize }: State, player: PlayerState): Promise<void> {
  const path = `${pathOf(player)}/community-bonuses`;
  await session.compare(`GET ${path}`, async () => {
    const { rows } = await allPages(pageSize, 'bonuses', (query) =>
      session.partnerApi('GET', `${path}?${query}`),
    );
    const wanted = player.shares.map(({ event, amount: share, isTrigger, toldBy }) => [
      ...[String(event.gameId), String(event.level), event.name, bonusText(share), isTrigger, toldBy],
    ]);
    const found = rows.map((bonus) =>
      ['gameId', 'tierLevel', 'tierName', 'amountUsd', 'isTriggerPlayer', 'toldBySpinId'].map((name) =>
        at(bonus, name),
      ),
    );
    return unlike(found, wanted.reverse());
  });
}

async function compareStatement(session: Session, { pageSize }: State, player: PlayerState): Promise<void> {
  const path = `/partners/${session.partner.partnerId}${pathOf(player)}/statement`;
  await session.compare(`the statement of ${player.playerId}`, async () => {
    let balance: bigint | undefined;
    const entries = await allFrom(pageSize, 'entries', 'cursor', async (query) => {
      const reply = await session.operator('GET', `${path}?${query}`);
      balance = amount(at(reply.json, 'balanceUsd'));
      return reply;
    });
    const wanted = player.entries.map(entryText).reverse();
    const found = entries
      .filter((entry) => at(entry, 'kind') !== 'opening')
      .map((entry) => entryText(entryIn(entry)));
    return unlike([balance, found], [player.balance, wanted]);
  });
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

async function compareRounds(session: Session, { pageSize }: State, player: PlayerState): Promise<void> {
  const path = `/rounds?playerId=${encodeURIComponent(player.playerId)}`;
  await session.compare(`GET ${path}`, async () => {
    const { rows } = await allPages(pageSize, 'rounds', (query) => session.play('GET', `${path}&${query}`));
    const found = rows.map((round) =>
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
  // The service takes the totals from the ledger, to which entries are committed slightly later.
  await session.awaited(`GET ${path}`, async () => {
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
}

async function comparePot(session: Session, { pageSize }: State, { gameId }: Game, pot: Pot): Promise<void> {
  const path = `/games/${gameId}`;
  await session.compare(`GET ${path}/communal`, async () => {
    const { json } = await session.operator('GET', `${path}/communal`);
    const found = ['version', 'progress', 'budgetUsd', 'paidUsd'].map((name) => at(json, name));
    const wanted = [String(pot.version), String(pot.progress), bonusText(pot.budget), bonusText(pot.paid)];
    return unlike(found, wanted);
  });
  await session.compare(`GET ${path}/communal/events`, async () => {
    const { rows } = await allPages(pageSize, 'events', (query) =>
      session.operator('GET', `${path}/communal/events?${query}`),
    );
    const found = rows.map((event) => [
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

/** Returns a time range that contains the whole sequence. */
function range(): string {
  const day = 86_400_000;
  const [from, to] = [-1, 2].map((days) => new Date(Date.now() + days * day).toISOString());
  return `from=${from}&to=${to}`;
}

/**
 * Compares the list of the partner's spins by time.
 * @returns the spins in the order of the response
 */
async function compareByTime(session: Session, state: State): Promise<readonly Json[]> {
  let found: readonly Json[] = [];
  await session.compare('GET /spins', async () => {
    found = await allFrom(state.pageSize, 'spins', 'cursor', (query) =>
      session.partnerApi('GET', `/spins?${range()}&${query}`),
    );
    const shown = found.map((spin) => `${String(at(spin, 'playerId'))} ${spinAs(spin)}`);
    const wanted = state.spins.map((spin) => `${spin.playerId} ${spinAs(parsed(spin))}`);
    const wagers = new Map(state.games.map(({ gameId, wager }) => [gameId, wager]));
    const faults = found.slice(0, wanted.length).flatMap((item, i) => {
      const { gameId } = state.spins[i]!;
      return historyFault(item, wagers.get(gameId)!, { json: parsed(state.spins[i]!), gameId }) ?? [];
    });
    return unlike([shown, faults], [wanted, []]);
  });
  return found;
}

async function compareExport(session: Session, state: State, spins: readonly Json[]): Promise<void> {
  const wagers = new Map(state.games.map(({ gameId, wager }) => [String(gameId), wager]));
  await session.compare('GET /spins as CSV', async () => {
    const csv = await session.partnerText(`/spins?${range()}`, 'text/csv');
    const rows = spins.map((spin) => rowOf(spin, shortest(wagers.get(String(at(spin, 'gameId')))!)));
    return unlike(csv.trim().split(/\r?\n/), [HEADER, ...rows]);
  });
}

/** Formats an amount in the shortest form, as in JSON. */
const shortest = (micros: bigint): string => usd(micros).replace(/\.?0+$/, '');

async function compareFeed(session: Session, state: State): Promise<void> {
  // Events are recorded when the ledger is committed, which is slightly later.
  await session.awaited('GET /events', async () => {
    const events = await allFrom(state.pageSize, 'events', 'after', (query) =>
      session.partnerApi('GET', `/events?${query}`),
    );
    const found = events
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

/** Commands of settlement: the report of the current day, and the partner's acknowledgement or dispute. */
import fc from 'fast-check';
import { amount, at, type Json } from '../decimal.js';
import { type Command, NOTHING, pathPart } from './command.js';
import { type Session, same, unlike } from './session.js';
import type { State } from './state.js';

/** Returns the expected totals of the day's report as text. */
function totalsOf(state: State): string {
  const sum = (values: readonly bigint[]): bigint => values.reduce((all, value) => all + value, 0n);
  const rounds = [...state.players.values()].flatMap((player) => player.rounds);
  const shares = state.games.map(({ pot }) => pot?.paid ?? 0n);
  return [
    state.games.reduce((all, { totals }) => all + totals.spins, 0),
    sum(state.games.map(({ totals }) => totals.wagered)),
    sum(state.games.map(({ totals }) => totals.paid)),
    sum(shares),
    state.adjustments,
    rounds.filter(({ status }) => status === 'OPEN').length,
    sum(rounds.filter(({ status }) => status === 'OPEN').map(({ wagered }) => wagered)),
    ...state.games.map(
      ({ gameId, totals: { spins, wagered, paid } }, place) =>
        `${gameId}: ${spins} ${wagered} ${paid} ${shares[place]}`,
    ),
  ].join(', ');
}

/** Returns the totals of the report in a response as text. */
function totalsIn(report: Json | undefined): string {
  const games = at(report, 'gameBreakdown') as readonly Json[];
  return [
    at(report, 'totalSpins'),
    ...['totalWageredUsd', 'totalPaidOutUsd', 'communityBonusUsd', 'adjustmentsUsd'].map((name) =>
      amount(at(report, name)),
    ),
    at(report, 'openRounds'),
    amount(at(report, 'openWageredUsd')),
    ...games.map((game) => {
      const [wagered, paid, shares] = ['wageredUsd', 'paidOutUsd', 'communityBonusUsd'].map((name) =>
        amount(at(game, name)),
      );
      return `${String(at(game, 'gameConfigId'))}: ${String(at(game, 'spins'))} ${wagered} ${paid} ${shares}`;
    }),
  ].join(', ');
}

/** Returns false once the day has changed. A sequence that passes midnight can't check the report. */
const isSameDay = (state: State): boolean => state.day === new Date().toISOString().slice(0, 10);

const pathOf = (session: Session, state: State): string =>
  `/partners/${session.partner.partnerId}/settlements/${state.day}`;

/**
 * Waits until the ledger is complete, because a report covers only committed entries. The statement of the
 * player with the newest entry becomes available only when that entry is committed.
 */
async function isBooked(session: Session, { players }: State): Promise<void> {
  const [newest] = [...players.values()].sort((a, b) => b.newestEntry - a.newestEntry);
  if (newest === undefined) return;
  const path = `/partners/${session.partner.partnerId}/players/${pathPart(newest.playerId)}/statement?limit=1`;
  await session.compare('the newest entry is booked', async () => {
    const { json } = await session.operator('GET', path);
    const [entry] = (at(json, 'entries') ?? []) as readonly Json[];
    return unlike(amount(at(entry, 'balanceUsd')), newest.balance);
  });
}

export const makeReport: Command<null> = {
  name: 'make report',
  weight: 2,
  arbitrary: () => fc.constant(null),
  applies: isSameDay,
  async run(session, state) {
    await isBooked(session, state);
    const answer = state.report?.status === 'DISPUTED' ? '?reason=model' : '';
    const reply = await session.operator('POST', `${pathOf(session, state)}${answer}`);
    if (!isSameDay(state)) return NOTHING;
    if (state.report?.status === 'ACKNOWLEDGED') {
      session.expect(reply, 'report', '409 KS-4304');
      return NOTHING;
    }
    session.expect(reply, 'report', '201');
    const totals = totalsOf(state);
    state.report = { status: 'PENDING', revision: (state.report?.revision ?? 0) + 1, totals };
    judge(reply.json, state);
    return NOTHING;
  },
};

function judge(json: Json | undefined, state: State): void {
  const { status, revision, totals } = state.report!;
  same('the totals of the report', totalsIn(json), totals);
  same('the status of the report', at(json, 'reportStatus'), status);
  same('the revision of the report', at(json, 'revision'), String(revision));
}

export const judgeReport: Command<boolean> = {
  name: 'judge report',
  weight: 2,
  arbitrary: () => fc.boolean(),
  applies: isSameDay,
  async run(session, state, isAccepted) {
    const path = `/settlements/${state.day}/${isAccepted ? 'acknowledge' : 'dispute'}`;
    const reply = await session.partnerApi('POST', path, isAccepted ? {} : { reason: 'model' });
    if (!isSameDay(state)) return NOTHING;
    const { report } = state;
    const refusal = { ACKNOWLEDGED: '409 KS-4302', DISPUTED: '409 KS-4303', PENDING: undefined };
    const wanted = report === undefined ? '404 KS-4301' : (refusal[report.status] ?? '200');
    session.expect(reply, 'judge report', wanted);
    if (wanted !== '200') return NOTHING;
    report!.status = isAccepted ? 'ACKNOWLEDGED' : 'DISPUTED';
    judge(reply.json, state);
    return NOTHING;
  },
};

/**
 * Compares the newest report with the reference state at its creation, and creates a new report if possible.
 */
export async function compareReports(session: Session, state: State): Promise<void> {
  if (!isSameDay(state)) return;
  const read = await session.partnerApi('GET', `/settlements/${state.day}`);
  if (!isSameDay(state)) return;
  session.expect(read, 'read report', state.report === undefined ? '404 KS-4301' : '200');
  if (state.report !== undefined) judge(read.json, state);
  if (state.players.size > 0) await makeReport.run(session, state, null);
}

/**
 * Initializes communal progressives at the boundary, where the oldest kept day of the ledger begins, and
 * checks the dropped days before it. Archived payouts of pots must equal the recorded shares, the shares of
 * an event must sum to its payout, and the budgets must follow from payouts and fundings.
 */
import { AUDITED_KINDS } from '../../domain/auditedKinds.js';
import type { CopyRow } from '../../postgres/copy.js';
import type { Snapshot } from './auditReads.store.js';
import { DROPPED_EVENTS, DROPPED_SHARE_DAYS, DROPPED_SHARES } from './communalBoundary.store.js';
import type { CommunalReplay } from './communalReplay.js';
import type { Findings, Place } from './report.js';

export type PotSnapshot = Pick<Snapshot, 'facts' | 'droppedPots'>;

interface Paid {
  readonly shares: bigint;
  readonly micros: bigint;
}

const NOTHING: Paid = { shares: 0n, micros: 0n };
const noPause = async (): Promise<void> => {};

export async function beginPots(
  snapshot: PotSnapshot,
  communal: CommunalReplay,
  findings: Findings,
): Promise<void> {
  const { facts, droppedPots } = snapshot;
  const { fromId, pots } = facts.boundary;
  if (fromId === 0n) return;
  const found: Found = (problem, at, expected, is) => findings.found('communal', problem, at, expected, is);
  const paid = await paidByArchives(snapshot, communal, found);
  for (const pot of pots) {
    const funded = facts.communal.fundings
      .filter(({ gameId, noteId }) => gameId === pot.gameId && noteId < fromId)
      .reduce((sum, { amountMicros }) => sum + amountMicros, 0n);
    const budget = funded - (paid.get(pot.gameId) ?? 0n);
    if (pot.budgetMicros !== budget)
      found(
        'the budget at the start of the oldest kept day is not fundings − shares',
        { game: pot.gameId },
        budget,
        pot.budgetMicros,
      );
    for (const { playerId, spinId } of pot.recent)
      if (spinId >= fromId) {
        const at = { game: pot.gameId, player: playerId, entry: spinId.toString() };
        found('the recent players at the start of the oldest kept day include a later spin', at);
      }
    communal.begin(pot, fromId);
  }
  let events = 0;
  await droppedPots.events((row) => {
    events++;
    droppedEvent(row, facts.communal.rules, found);
  }, noPause);
  findings.looked('communal', 'events of dropped days', events);
  await droppedPots.shares(
    (row) =>
      communal.beginPlayer(
        row.int(DROPPED_SHARES.partnerId),
        row.text(DROPPED_SHARES.playerId),
        row.safe(DROPPED_SHARES.waiting),
        row.big(DROPPED_SHARES.notifiedTo),
      ),
    noPause,
  );
}

type Found = (problem: string, at: Place, expected?: bigint | string, is?: bigint | string) => void;

/**
 * Returns the total that each game's pot paid on dropped days, from the archives. Compares each day with the
 * recorded shares.
 */
async function paidByArchives(
  { facts, droppedPots }: PotSnapshot,
  communal: CommunalReplay,
  found: Found,
): Promise<ReadonlyMap<number, bigint>> {
  const booked = new Map<string, Paid>();
  await droppedPots.days((row) => {
    const { gameId, day, shares, micros } = DROPPED_SHARE_DAYS;
    booked.set(`${row.int(gameId)}/${row.text(day)}`, { shares: row.big(shares), micros: row.big(micros) });
  }, noPause);
  const paid = new Map<number, bigint>();
  const say = ({ shares, micros }: Paid): string => `${shares} shares, ${micros}`;
  const compare = (gameId: number, day: string, expected: Paid, is: Paid): void => {
    if (say(expected) === say(is)) return;
    found(
      'the shares of a dropped day differ from its archive',
      { game: gameId, day },
      say(expected),
      say(is),
    );
  };
  for (const { day, totals } of facts.boundary.days) {
    for (const { gameId, kind, entries, creditedMicros } of totals) {
      if (kind !== AUDITED_KINDS.communalShare.code) continue;
      const total = { shares: BigInt(entries), micros: BigInt(creditedMicros) };
      const key = `${gameId}/${day}`;
      compare(gameId, day, total, booked.get(key) ?? NOTHING);
      booked.delete(key);
      communal.droppedDay(gameId, day, total.shares, total.micros);
      paid.set(gameId, (paid.get(gameId) ?? 0n) + total.micros);
    }
  }
  for (const [key, is] of booked) {
    const [game, day] = key.split('/');
    compare(Number(game), day!, NOTHING, is);
  }
  return paid;
}

/**
 * Verifies that an event before the boundary of dropped days follows its rules, and that its shares sum to
 * its payout.
 */
function droppedEvent(row: CopyRow, rules: PotSnapshot['facts']['communal']['rules'], found: Found): void {
  const at = { game: row.int(DROPPED_EVENTS.gameId), event: row.big(DROPPED_EVENTS.eventId).toString() };
  const progress = row.big(DROPPED_EVENTS.progress);
  const paid = row.big(DROPPED_EVENTS.paid);
  const its = rules.find(
    ({ gameId, version }) => gameId === at.game && version === row.int(DROPPED_EVENTS.version),
  );
  const tier = its?.tiers.findLast(({ triggerAtSpins }) => progress % triggerAtSpins === 0n);
  const isPaid = row.text(DROPPED_EVENTS.status) === 'PAID';
  const isOfRules =
    its?.isEnabled === true &&
    progress % its.triggerInterval === 0n &&
    tier?.level === row.int(DROPPED_EVENTS.tier) &&
    paid <= tier.amountMicros &&
    (isPaid || paid === 0n);
  if (!isOfRules) found('an event of a dropped day does not follow from its rules', at);
  const expected = `${row.int(DROPPED_EVENTS.winners)} shares, ${paid}`;
  const is = `${row.big(DROPPED_EVENTS.shares)} shares, ${row.big(DROPPED_EVENTS.shared)}`;
  if (expected !== is)
    found('the shares of an event of a dropped day do not sum to its payout', at, expected, is);
}

/**
 * Verifies an ended round from the data that the service publishes. Rules, seed and actions determine every
 * card, stake and payout.
 */
import { type Static, Type } from '#typebox';
import { usdToMicros } from '../money.js';
import { ACTIONS, IllegalActionError, type Move } from './blackjack.js';
import { type BlackjackRules, checkRules, rulesHash } from './blackjackRules.js';
import { type RoundRecord, viewRound } from './round.js';
import { shoeCommitment } from './shoe.js';

export const HEX_32 = '^[0-9a-f]{64}$';
const hex32 = () => Type.String({ pattern: HEX_32 });

/**
 * Members of the response of `GET /rounds/{roundId}` that are the input of the proof. The other members are
 * compared with the result.
 */
export const EndedRound = Type.Object({
  roundId: Type.String(),
  gameId: Type.Integer({ minimum: 1, maximum: 4_294_967_295 }),
  status: Type.String(),
  actions: Type.Array(Type.String()),
  table: Type.Object({ wagerUsd: Type.Number(), rules: Type.Object({}, { additionalProperties: true }) }),
  rulesHash: hex32(),
  shoe: Type.Object({ index: Type.Integer({ minimum: 0 }), commitment: hex32(), seed: hex32() }),
});

export type EndedRound = Static<typeof EndedRound>;

/** Members of a round that the proof computes again and compares. */
const PROVEN = ['phase', 'lastActionSeq', 'wageredUsd', 'payoutUsd', 'dealer', 'hands', 'insurance'] as const;

/** Empty if the round is proven. */
export function roundFaults(round: EndedRound): string[] {
  const checked = checkRules(round.table.rules as Readonly<Record<string, unknown>>);
  if ('faults' in checked) return checked.faults.map(({ path, message }) => `/table${path} ${message}`);
  const { rules } = checked;
  const faults: string[] = [];
  const hash = rulesHash(rules);
  if (hash.toString('hex') !== round.rulesHash)
    faults.push(`the hash of the rules is ${hash.toString('hex')}, not ${round.rulesHash}`);
  const seed = Buffer.from(round.shoe.seed, 'hex');
  const { gameId } = round;
  const committed = shoeCommitment({ gameId, index: round.shoe.index, rulesHash: hash, seed }).toString(
    'hex',
  );
  if (committed !== round.shoe.commitment)
    faults.push(
      `the commitment computed from game, index, rules and seed is ${committed}, not ${round.shoe.commitment}`,
    );
  return [...faults, ...playFaults(round, rules, seed)];
}

const MOVES: readonly string[] = [...ACTIONS, 'timeout'];

function playFaults(round: EndedRound, rules: BlackjackRules, seed: Buffer): string[] {
  const wagerMicros = usdToMicros(round.table.wagerUsd);
  if (wagerMicros === undefined) return ['/table/wagerUsd is not a whole number of micro-USD'];
  const unknown = round.actions.find((action) => !MOVES.includes(action));
  if (unknown !== undefined) return [`«${unknown}» is not an action`];
  const entries = round.actions.length + 1 + (round.status === 'VOIDED' ? 1 : 0);
  const record: RoundRecord = {
    gameId: round.gameId,
    partnerId: 0,
    playerId: '',
    shoeIndex: round.shoe.index,
    requestId: null,
    status: round.status === 'VOIDED' ? 'VOIDED' : 'SETTLED',
    moves: round.actions as readonly Move[],
    entryIds: Array.from({ length: entries }, () => 0n),
    wagersMicros: [],
    balancesMicros: Array.from({ length: entries }, () => 0),
    payoutMicros: 0,
    isToVoid: false,
  };
  const table = { wagerMicros, rules, rulesHash: rulesHash(rules), roundTimeoutSeconds: 0 };
  try {
    const played = viewRound(table, record, seed, round.roundId);
    if (played.status !== round.status)
      return [`the actions lead to the status ${played.status}, not ${round.status}`];
    const shown = round as unknown as Record<string, unknown>;
    return PROVEN.filter((name) => JSON.stringify(played[name]) !== JSON.stringify(shown[name])).map(
      (name) => `${name} is ${JSON.stringify(played[name])}, not ${JSON.stringify(shown[name])}`,
    );
  } catch (error) {
    if (error instanceof IllegalActionError) return [`the actions can't be played, because ${error.message}`];
    throw error;
  }
}

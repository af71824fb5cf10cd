/**
 * Audits blackjack rounds. Every round is played again from its shoe's seed and its moves, and compared with
 * its ledger entries. The open rounds in Redis must equal those in Postgres.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { AUDITED_KINDS } from '../../domain/auditedKinds.js';
import { type Move, replayRound, roundMoney } from '../../domain/games/blackjack.js';
import { openSteps } from '../../domain/games/round.js';
import { shuffleShoe } from '../../domain/games/shoe.js';
import { dealCode } from '../../domain/games/table.js';
import { openFields } from '../../engine/blocks/blockSeals.store.js';
import type { RedisAuditReads } from '../../engine/redis/auditReads.js';
import { readRound } from '../../engine/redis/cellRecords.js';
import { playerAtGame } from '../../engine/redis/keys.js';
import type { CopyRow } from '../../postgres/copy.js';
import type { Facts, Snapshot } from './auditReads.store.js';
import { type AuditedTable, ROUNDS, type RoundReads } from './gameAuditReads.store.js';
import type { Findings, Place } from './report.js';

/**
 * Moves by their code in a step of a round. The audit has its own constants, so that an error in
 * domain/games/round.ts does not go unnoticed.
 */
const MOVES: readonly Move[] = [
  'hit',
  'stand',
  'double',
  'split',
  'insurance',
  'noInsurance',
  'surrender',
  'timeout',
];
const KIND = {
  deal: AUDITED_KINDS.roundDeal.code,
  action: AUDITED_KINDS.roundAction.code,
  void: AUDITED_KINDS.roundVoid.code,
};

const VOID = 15;
const ENDED = 0x8000;

interface Expected {
  readonly kind: number;
  readonly wager: number;
  readonly credit: number;
  readonly code: number;
}

export async function auditRounds(
  { facts, rounds, strayRoundEntries }: Snapshot,
  findings: Findings,
): Promise<void> {
  let count = 0;
  let entries = 0;
  await rounds((row) => {
    count++;
    entries += listOf(row, ROUNDS.entryIds).length;
    const problem = judge(row, facts.tables.get(row.int(ROUNDS.gameId)));
    if (problem === undefined) return;
    const [what, expected, found] = problem;
    findings.found('rounds', what, placeOf(row), expected, found);
  });
  await strayRoundEntries((row) => {
    const problem =
      row.int(1) === 1
        ? 'a ledger entry of a round is missing in its round, or differs there'
        : 'an entry of a round is missing in the ledger, or differs there';
    findings.found('rounds', problem, { entry: row.big(0).toString() });
  });
  findings.looked('rounds', 'rounds replayed', count);
  findings.looked('rounds', 'entries of rounds', entries);
}

const listOf = (row: CopyRow, field: number): string[] =>
  row.isNull(field) || row.text(field) === '' ? [] : row.text(field).split(',');

const placeOf = (row: CopyRow): Place => ({
  game: row.int(ROUNDS.gameId),
  shoe: row.safe(ROUNDS.shoeIndex),
  partner: row.int(ROUNDS.partnerId),
  player: row.text(ROUNDS.playerId),
  entry: listOf(row, ROUNDS.entryIds)[0] ?? '-',
});

type Problem = readonly [what: string, expected?: string, found?: string];

function judge(row: CopyRow, table: AuditedTable | undefined): Problem | undefined {
  if (table === undefined) return ['the game is not a blackjack table'];
  if (row.isNull(ROUNDS.seed)) return ['no block has the shoe of the round'];
  openFields(row, ROUNDS.sealed, { seed: ROUNDS.seed }, row.int(ROUNDS.seedFrom));
  const status = row.text(ROUNDS.status);
  const moves = listOf(row, ROUNDS.moves).map((code) => MOVES[Number(code)]!);
  let expected: Expected[];
  try {
    expected = entriesOf(table, row.bytes(ROUNDS.seed), moves, status === 'VOIDED');
  } catch (error) {
    return [`the moves can't be played: ${(error as Error).message}`];
  }
  const [kinds, wagers, credits, codes] = [ROUNDS.kinds, ROUNDS.wagers, ROUNDS.credits, ROUNDS.codes].map(
    (field) => listOf(row, field),
  ) as [string[], string[], string[], string[]];
  const text = ({ kind, wager, credit, code }: Expected): string => `${kind}/${wager}/${credit}/${code}`;
  const should = expected.map(text).join(' ');
  const is = kinds.map((kind, i) => `${kind}/${wagers[i]}/${credits[i]}/${codes[i]}`).join(' ');
  if (is !== should) {
    return ['the entries (kind/wager/credit/code) do not follow from shoe and moves', should, is];
  }
  const last = expected.at(-1)!;
  const isOver = expected.length === 1 ? last.code !== 0 : (last.code & ENDED) !== 0;
  const expectedStatus = last.kind === KIND.void ? 'VOIDED' : isOver ? 'SETTLED' : 'OPEN';
  if (status !== expectedStatus)
    return ['the status of the round does not follow from its moves', expectedStatus, status];
  const payout = row.isNull(ROUNDS.payout) ? 'none' : String(row.safe(ROUNDS.payout));
  const expectedPayout = isOver ? String(last.credit) : 'none';
  return payout === expectedPayout
    ? undefined
    : ['the payout of the round does not follow from its moves', expectedPayout, payout];
}

/**
 * Computes the ledger entries that a round must have.
 * @throws Error if a move is illegal or follows the end of the round
 */
function entriesOf(
  { rules, wagerMicros }: AuditedTable,
  seed: Buffer,
  moves: readonly Move[],
  isVoided: boolean,
): Expected[] {
  const shoe = shuffleShoe(rules.decks, seed);
  const expected: Expected[] = [];
  let staked = 0;
  for (let played = 0; played <= moves.length; played++) {
    const money = roundMoney(replayRound(rules, shoe, moves.slice(0, played)), wagerMicros);
    const isEnd = money.payoutMicros !== undefined;
    const code =
      played === 0
        ? dealCode(rules, shoe)
        : (isEnd ? ENDED : 0) | (played << 4) | MOVES.indexOf(moves[played - 1]!);
    expected.push({
      kind: played === 0 ? KIND.deal : KIND.action,
      wager: money.wageredMicros - staked,
      credit: money.payoutMicros ?? 0,
      code,
    });
    staked = money.wageredMicros;
  }
  if (isVoided)
    expected.push({
      kind: KIND.void,
      wager: -staked,
      credit: 0,
      code: ENDED | (expected.length << 4) | VOID,
    });
  return expected;
}

const TRIES = 8;
const PAUSE_MS = 125;

export interface OpenRoundAudit {
  readonly facts: Facts;
  readonly findings: Findings;
  readonly reads: RoundReads;
  readonly redis: Pick<RedisAuditReads, 'rounds'>;
}

/** Differences are compared again a few times, because rounds continue during the audit. */
export async function auditOpenRounds({ facts, findings, reads, redis }: OpenRoundAudit): Promise<void> {
  if (facts.tables.size === 0) return;
  for (let cell = 0; cell < facts.cells; cell++) {
    let differing = new Map<string, readonly [expected: string, found: string]>();
    for (let attempt = 0; attempt < TRIES; attempt++) {
      if (attempt > 0) await pause(PAUSE_MS);
      const now = await differences(cell, reads, redis);
      // A difference that changed between two attempts was a round in progress, not a fault.
      const same = [...now].filter(([field, pair]) => differing.get(field)?.join() === pair.join());
      if (attempt === 0) findings.looked('rounds', 'cells whose open rounds in Redis were compared', 1);
      differing = attempt === 0 ? now : new Map(same);
      if (differing.size === 0) break;
    }
    for (const [field, [expected, found]] of differing) {
      findings.found(
        'rounds',
        'the open round of the player in Redis differs from Postgres',
        { cell, field },
        expected,
        found,
      );
    }
  }
}

async function differences(
  cell: number,
  reads: RoundReads,
  redis: Pick<RedisAuditReads, 'rounds'>,
): Promise<Map<string, readonly [expected: string, found: string]>> {
  const found = new Map<string, string>();
  for await (const page of redis.rounds(cell)) {
    for (const [field, value] of page) {
      const round = readRound(value);
      const text = round === undefined ? 'unreadable' : textOf(round.shoeIndex, round.dealId, round.steps);
      found.set(field.toString(), text);
    }
  }
  const differing = new Map<string, readonly [string, string]>();
  for (const round of await reads.openRounds(cell)) {
    const { gameId, partnerId, playerId, shoeIndex, entryIds } = round;
    const field = playerAtGame(gameId, partnerId, playerId);
    const expected = textOf(shoeIndex, entryIds[0]!, openSteps(round));
    const actual = found.get(field) ?? 'none';
    if (actual !== expected) differing.set(field, [expected, actual]);
    found.delete(field);
  }
  for (const [field, text] of found) differing.set(field, ['none', text]);
  return differing;
}

const textOf = (shoeIndex: number, dealId: bigint, steps: number): string =>
  `shoe ${shoeIndex}, deal ${dealId}, step ${steps}`;

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packOutcomes } from '../../../src/domain/outcome.js';
import { checkParSheet, type ParSheet } from '../../../src/domain/par.js';
import { leafKeyOf, leafNonces, outcomeLeafData } from '../../../src/domain/publicLog/leaves.js';
import { leafHash, MemoryTree } from '../../../src/domain/publicLog/tree.js';
import { drawBlock } from '../../../workers/drawBlock.js';
import { world } from '../../setup/world.js';
import { blocksFor } from '../../support/api.js';
import type { TestPartner } from '../../support/client.js';
import { load, portOf, spinRequest } from '../../support/load.js';
import { IS_WHOLE } from '../../support/root.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import { fiveReelWild, parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

/** Number of spins. `npm run test:scale` sends 200,000. */
const SPINS = IS_WHOLE ? 200_000 : 16_000;
/** The number of spins exceeds the size of one block. */
const SPINS_OF_SHEET = IS_WHOLE ? 20_000 : 11_000;
const PLAYERS = 500;
const CONNECTIONS = 64;

const { stores, sql } = world();
let service: ServerProcess;

beforeAll(async () => {
  service = await spawnService(environment(stores));
});

afterAll(async () => {
  await service?.end();
});

interface SpinAnswer {
  spinId: string;
  outcome: { prizeTier: number; payoutUsd: number; isBonusTrigger: boolean };
  presentation: {
    comboString: string;
    reelSymbols: { name: string; display: string; isWild: boolean }[];
    reelStops: number[];
    animationHints: { celebrationTier: string; isNearMiss: boolean; isBonusTrigger: boolean };
  };
  balance: { balanceUsd: number };
}

/** The spins that were sent to one game, with their responses. */
interface Played {
  partner: TestPartner;
  gameId: number;
  sheet: ParSheet;
  wagerMicros: number;
  answers: { playerId: string; payoutMicros: number; balanceMicros: number }[];
  spinIds: Set<string>;
}

/**
 * Converts USD to micro-USD. Amounts have at most 6 decimals and are far below 2^53 micro-USD, so the nearest
 * integer is exact.
 */
const micros = (usd: number) => Math.round(usd * 1e6);

function checkedSheet(json: unknown): ParSheet {
  const checked = checkParSheet(json);
  if ('faults' in checked) throw new Error(JSON.stringify(checked.faults));
  return checked.sheet;
}

async function play(
  json: Record<string, unknown>,
  spins: number,
  look?: (answer: SpinAnswer) => void,
): Promise<Played> {
  const { client } = service;
  const partner = await client.newPartner({
    openingBalanceUsd: 12.345678,
    minReadyBlocks: blocksFor(spins),
  });
  const gameId = await client.newGame(partner.key, json, spins);
  const answers: Played['answers'] = [];
  const spinIds = new Set<string>();
  const requests = Array.from({ length: PLAYERS }, (_, player) =>
    spinRequest(
      partner.key,
      JSON.stringify({ gameId, playerId: `p${player}`, wagerUsd: json.denominationUsd }),
    ),
  );
  const playerOf = new Map(requests.map((request, player) => [request, `p${player}`]));
  let sent = 0;
  const cut = await load({
    port: portOf(client.base),
    connections: CONNECTIONS,
    next: () => (sent < spins ? requests[sent++ % PLAYERS] : undefined),
    onAnswer: ({ status, text }, request) => {
      if (status !== 200) throw new Error(`${status} ${text}`);
      const answer = JSON.parse(text) as SpinAnswer;
      look?.(answer);
      spinIds.add(answer.spinId);
      answers.push({
        playerId: playerOf.get(request)!,
        payoutMicros: micros(answer.outcome.payoutUsd),
        balanceMicros: micros(answer.balance.balanceUsd),
      });
    },
  });
  expect([cut, answers.length, spinIds.size]).toEqual([0, spins, spins]);
  await until(async () => {
    const [row] = await sql<{ next_index: bigint }[]>`
      SELECT next_index FROM game_progress WHERE game_id = ${gameId}`;
    return Number(row?.next_index ?? 0) >= spins;
  }, 'the ledger has every spin');
  return {
    partner,
    gameId,
    sheet: checkedSheet(json),
    wagerMicros: micros(json.denominationUsd as number),
    answers,
    spinIds,
  };
}

/** Compares every response, balance, total and hash chain with the ledger. */
async function ledgerHolds({ partner, gameId, wagerMicros, answers }: Played): Promise<void> {
  const { partnerId } = partner;
  const rows = await sql<
    { player_id: string; wager_micros: bigint; credit_micros: bigint; balance_micros: bigint }[]
  >`
    SELECT player_id, wager_micros, credit_micros, balance_micros FROM ledger
    WHERE partner_id = ${partnerId} AND kind = 1`;
  const lineOf = (playerId: string, payout: unknown, balance: unknown) => `${playerId} ${payout} ${balance}`;
  expect(rows.map((row) => lineOf(row.player_id, row.credit_micros, row.balance_micros)).sort()).toEqual(
    answers.map((each) => lineOf(each.playerId, each.payoutMicros, each.balanceMicros)).sort(),
  );
  expect(rows.every((row) => row.wager_micros === BigInt(wagerMicros))).toBe(true);

  // A player's balance is the opening balance minus the wagers plus the payouts.
  const expected = new Map<string, number>();
  for (const { playerId, payoutMicros } of answers) {
    expected.set(playerId, (expected.get(playerId) ?? 12_345_678) - wagerMicros + payoutMicros);
  }
  for (const [playerId, balance] of expected) {
    const player = await service.client.partner('GET', `/players/${playerId}`, partner.key);
    expect([playerId, micros(player.body.balanceUsd as number)]).toEqual([playerId, balance]);
  }

  const broken = await sql`
    SELECT * FROM (
      SELECT entry_id, previous_id, entry_number, kind, balance_micros, credit_micros, wager_micros,
             row_number() OVER player AS number, lag(entry_id, 1, 0::bigint) OVER player AS before_id,
             lag(balance_micros, 1, 0::bigint) OVER player AS before_micros
      FROM ledger WHERE partner_id = ${partnerId}
      WINDOW player AS (PARTITION BY player_id ORDER BY entry_id)
    ) AS chain
    WHERE entry_number <> number OR previous_id <> before_id OR (kind = 2) <> (number = 1)
       OR balance_micros <> before_micros - wager_micros + credit_micros
    LIMIT 5`;
  expect([...broken]).toEqual([]);

  const [totals] = await sql<{ unbalanced: number; total: string }[]>`
    SELECT count(*) FILTER (WHERE sum <> 0 OR sides <> 2)::int AS unbalanced, sum(sum)::text AS total
    FROM (SELECT sum(amount_micros) AS sum, count(*) AS sides FROM postings GROUP BY entry_id) AS entry`;
  expect(totals).toEqual({ unbalanced: 0, total: '0' });

  const sums = { spins: BigInt(answers.length), wagered: 0n, paid: 0n };
  for (const { payoutMicros } of answers) {
    sums.wagered += BigInt(wagerMicros);
    sums.paid += BigInt(payoutMicros);
  }
  const [days] = await sql`
    SELECT sum(spins)::bigint AS spins, sum(wagered_micros)::bigint AS wagered, sum(paid_micros)::bigint AS paid
    FROM game_days WHERE game_id = ${gameId}`;
  expect(days).toEqual(sums);
  const differing = await sql`
    SELECT * FROM (SELECT game_id, day, spins, wagered_micros AS wagered, paid_micros AS paid FROM game_days) AS d
    FULL JOIN (
      SELECT game_id, (to_timestamp((entry_id >> 22) / 1000.0) AT TIME ZONE 'UTC')::date AS day, count(*) AS spins,
             sum(wager_micros)::bigint AS wagered, sum(credit_micros)::bigint AS paid
      FROM ledger WHERE kind = 1 GROUP BY 1, 2) AS l USING (game_id, day, spins, wagered, paid)
    WHERE l.game_id IS NULL OR d.game_id IS NULL`;
  expect([...differing]).toEqual([]);
}

/**
 * Checks that every index was dealt once and in order, with the outcome of its sealed block and the payout of
 * the PAR sheet.
 */
async function outcomesAreTheSealedOnes({ gameId, sheet, wagerMicros, answers }: Played): Promise<void> {
  const rows = await sql<{ outcome_index: bigint; outcome_code: number; credit_micros: bigint }[]>`
    SELECT outcome_index, outcome_code, credit_micros FROM ledger WHERE game_id = ${gameId} ORDER BY entry_id`;
  const blocks = await sql<
    {
      from_index: bigint;
      to_index: bigint;
      outcomes: Buffer;
      seed: Buffer;
      nonce: Buffer;
      commitment: Buffer;
    }[]
  >`SELECT * FROM blocks WHERE game_id = ${gameId} ORDER BY from_index`;
  let end = 0;
  for (const block of blocks) {
    const from = Number(block.from_index);
    const count = Number(block.to_index) - from;
    expect([from, block.outcomes.length]).toEqual([end, count * 2]);
    end += count;
    const nonces = leafNonces(leafKeyOf({ gameId, fromIndex: from, nonce: block.nonce }), count);
    const leaves = Array.from({ length: count }, (_, at) => {
      const place = { gameId, index: from + at };
      const code = block.outcomes.readUInt16LE(2 * at);
      return leafHash(outcomeLeafData(place, code, nonces.subarray(32 * at, 32 * at + 32)));
    });
    expect(block.commitment.equals(new MemoryTree(leaves).root())).toBe(true);
    expect(block.outcomes.equals(packOutcomes(drawBlock(sheet, block.seed, count)))).toBe(true);
  }
  const sealed = Buffer.concat(blocks.map((block) => block.outcomes));
  const payouts = sheet.combinations.map(({ payMultiplier }) =>
    BigInt(Math.round(wagerMicros * payMultiplier)),
  );
  expect(rows.length).toBe(answers.length);
  const wrong = rows.filter(
    (row, index) =>
      row.outcome_index !== BigInt(index) ||
      row.outcome_code !== sealed.readUInt16LE(index * 2) ||
      row.credit_micros !== payouts[row.outcome_code],
  );
  expect(wrong).toEqual([]);
}

describe(`spins over 64 connections (${SPINS.toLocaleString('en')} in total)`, () => {
  let played: Played;
  beforeAll(async () => {
    played = await play(parSheet('double-strike'), SPINS);
  });

  test('commits every spin of 64 concurrent connections with the exact micro-USD of its response', async () => {
    await ledgerHolds(played);
  });

  test('deals the sealed outcomes to 64 concurrent connections in order, each outcome once', async () => {
    await outcomesAreTheSealedOnes(played);
  });
});

describe('payouts below one cent', () => {
  test('pays amounts below one cent in full', async () => {
    const paid = new Map<number, number>();
    const played = await play(parSheet('penny-sub-cent'), SPINS_OF_SHEET, ({ outcome }) => {
      paid.set(outcome.payoutUsd, (paid.get(outcome.payoutUsd) ?? 0) + 1);
    });
    expect([...paid.keys()].sort()).toEqual([0, 0.005, 0.077]);
    await ledgerHolds(played);
    await outcomesAreTheSealedOnes(played);
  });
});

describe('a PAR sheet with wilds, a bonus and near misses', () => {
  test('refuses a PAR sheet that states an RTP different from its computed RTP', async () => {
    const { key } = await service.client.newPartner();
    const answer = await service.client.partner('POST', '/par-sheets', key, parSheet('five-reel-wild'));
    expect([answer.status, answer.body.errorCode]).toEqual([400, 'KS-4104']);
    expect(answer.body.details).toEqual([{ path: '/certifiedRtp', message: expect.any(String) }]);
  });

  test('spins return each combination with wilds, bonus and near misses exactly as the PAR sheet defines it', async () => {
    const json = fiveReelWild();
    const { combinations, symbols } = checkedSheet(json);
    const displays = new Map(symbols.map(({ name, display }) => [name, display]));
    const byShow = new Map(combinations.map((combination) => [combination.comboString, combination]));
    const seen = { wild: 0, bonus: 0, nearMiss: 0 };
    const wrong: SpinAnswer[] = [];
    const played = await play(json, SPINS_OF_SHEET, (answer) => {
      const { comboString, reelSymbols, animationHints } = answer.presentation;
      const combination = byShow.get(comboString);
      const asSheet =
        combination !== undefined &&
        answer.outcome.prizeTier === combination.tierId &&
        answer.outcome.payoutUsd === combination.payMultiplier &&
        answer.outcome.isBonusTrigger === animationHints.isBonusTrigger &&
        reelSymbols.every(
          ({ name, display, isWild }, reel) =>
            name === combination.reelSymbols[reel] &&
            display === displays.get(name) &&
            isWild === /(^|[^A-Za-z0-9])wild($|[^A-Za-z0-9])/i.test(name),
        ) &&
        (!animationHints.isNearMiss || combination.tierId === 0) &&
        (animationHints.celebrationTier === 'none') === combination.payMultiplier <= 1;
      if (!asSheet) wrong.push(answer);
      if (reelSymbols.some(({ isWild }) => isWild)) seen.wild++;
      if (answer.outcome.isBonusTrigger) seen.bonus++;
      if (animationHints.isNearMiss) seen.nearMiss++;
    });
    expect(wrong).toEqual([]);
    expect(seen).toEqual({
      wild: expect.toSatisfy((count: number) => count > 0),
      bonus: expect.toSatisfy((count: number) => count > 0),
      nearMiss: expect.toSatisfy((count: number) => count > 0),
    });
    await ledgerHolds(played);
    await outcomesAreTheSealedOnes(played);
  });
});

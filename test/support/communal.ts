/** Plays games with a communal progressive, and checks the results by the responses alone. */
import assert from 'node:assert/strict';
import { audit } from '../../src/books/audit/audit.js';
import type { AuditReport } from '../../src/books/audit/report.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import type { Answer, Client, TestPartner } from './client.js';
import { openNodes } from './redis.js';
import type { StoreUrls } from './stores.js';
import { until } from './wait.js';

export const RULES = {
  enabled: true,
  triggerInterval: 10,
  triggerSplitPct: 40,
  communitySplitPct: 60,
  tiers: [
    { tierLevel: 1, tierName: 'Mini', triggerAtSpins: 50, amountUsd: '5.00' },
    { tierLevel: 2, tierName: 'Größer', triggerAtSpins: 250, amountUsd: '20.000001' },
    { tierLevel: 3, tierName: 'Grand', triggerAtSpins: 1000, amountUsd: '100.00' },
  ],
};

export interface Bonus {
  readonly triggered: true;
  readonly tierName: string;
  readonly tierLevel: number;
  readonly totalAmountUsd: string;
  readonly yourShareUsd: string;
  readonly isTriggerPlayer: boolean;
  readonly eventId: string;
}

export interface SpinBody {
  readonly spinId: string;
  readonly outcome: { readonly payoutUsd: number };
  readonly balance: { readonly balanceUsd: number };
  readonly communityBonus: Bonus | null;
}

/** Converts USD, as a number or a decimal text, to micro-USD. */
export const micros = (usd: unknown): bigint => BigInt(Math.round(Number(usd) * 1e6));

let requests = 0;

/** Sets the rules of a communal progressive and funds its pot. */
export async function setUp(
  service: Client,
  gameId: number,
  rules: object = RULES,
  fundingUsd = '100000.00',
): Promise<void> {
  const set = await service.operator('PUT', `/games/${gameId}/communal`, rules);
  assert.equal(set.status, 200, set.text);
  const body = { amountUsd: fundingUsd, reason: 'promotion', requestId: `f${requests++}` };
  const funded = await service.operator('POST', `/games/${gameId}/communal/funding`, body);
  assert.equal(funded.status, 200, funded.text);
}

export const spin = (
  service: Client,
  partner: TestPartner,
  gameId: number,
  playerId: string,
  requestId?: string,
): Promise<Answer<SpinBody>> =>
  service.partner<SpinBody>('POST', '/spin', partner.key, {
    gameId,
    playerId,
    wagerUsd: 0.25,
    ...(requestId === undefined ? {} : { requestId }),
  });

/** Returns the violations that an audit of two stores finds. The audit must complete. */
export async function auditFindings(stores: StoreUrls): Promise<unknown[]> {
  const { checks, moving } = await auditReport(stores);
  return [...checks.flatMap(({ listed }) => listed), ...moving];
}

/**
 * Runs one audit, which does not wait for partner moves. Repeats the audit if it was interrupted because a
 * busy store did not respond in time.
 */
export async function auditReport(stores: StoreUrls): Promise<AuditReport> {
  let report = await audited(stores);
  await until(async () => {
    if (report.interrupted === undefined) return true;
    report = await audited(stores);
    return false;
  }, 'an audit comes to its end').catch((error: unknown) => {
    throw new Error(`The audit is interrupted each time: ${report.interrupted}`, { cause: error });
  });
  return report;
}

async function audited({ databaseUrl, redisUrl }: StoreUrls): Promise<AuditReport> {
  const sql = connectPostgres(databaseUrl, { max: 2, name: 'test', onError: () => {} });
  const nodes = await openNodes(redisUrl);
  const report = await audit(sql, nodes.nodes, { limit: 20, onProgress: () => {} });
  nodes.close();
  await sql.end();
  return report;
}

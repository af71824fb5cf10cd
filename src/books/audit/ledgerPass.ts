/** Reads the ledger once, in the order of its entries, and hands each entry to every check. */
import { SpinIds } from '../../domain/spinId.js';
import type { AuditReads, Snapshot } from './auditReads.store.js';
import { BalanceCheck } from './balanceCheck.js';
import { CommunalReplay } from './communalReplay.js';
import { CursorCheck } from './cursorCheck.js';
import { DayCheck } from './dayCheck.js';
import { IndexCheck } from './indexCheck.js';
import { CheckedEntry, type LedgerCheck } from './ledgerCheck.js';
import { OutcomeCheck } from './outcomeCheck.js';
import { RefundReplay } from './refundReplay.js';
import type { Findings } from './report.js';
import { RequestCheck } from './requestCheck.js';
import type { PlayerTable } from './tables.js';

/** What is compared with Redis after the pass. */
export interface PassedLedger {
  readonly rows: number;
  readonly players: PlayerTable;
  readonly requests: RequestCheck;
}

/** @param onRows gets the number of rows so far, after each network chunk */
export async function passLedger(
  snapshot: Snapshot,
  findings: Findings,
  reads: Pick<AuditReads, 'sealed'>,
  onRows: (rows: number) => void,
): Promise<PassedLedger> {
  const { facts } = snapshot;
  const spinIds = new SpinIds(facts.spinIdKey);
  const balances = new BalanceCheck(findings);
  const { players } = balances;
  const indices = new IndexCheck(facts, findings);
  const refunds = new RefundReplay(facts, findings, players, spinIds, indices);
  const requests = new RequestCheck(facts, findings, refunds);
  // A report lists findings in this order. Balances and indices come before the checks that ask them.
  const checks: readonly LedgerCheck[] = [
    new CursorCheck(facts, findings),
    balances,
    new DayCheck(facts, findings, players),
    indices,
    new OutcomeCheck(facts, findings, indices, reads),
    new CommunalReplay(facts, findings, players),
    refunds,
    requests,
  ];
  for (const check of checks) await check.begin?.(snapshot);
  const entry = new CheckedEntry(spinIds, facts.communal.pots.length > 0);
  let rows = 0;
  await snapshot.ledger(
    (row) => {
      rows++;
      entry.take(row);
      for (const check of checks) check.row(entry);
    },
    async () => {
      for (const check of checks) await check.pause?.();
      onRows(rows);
    },
  );
  for (const check of checks) check.end();
  return { rows, players, requests };
}

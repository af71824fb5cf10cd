/** Follows the chain of each player's entries: number, predecessor and balance. */
import { AUDITED_KINDS } from '../../domain/auditedKinds.js';
import type { Snapshot } from './auditReads.store.js';
import { BOUNDARY_PLAYER } from './boundary.store.js';
import { idOf, timeMsOfWords } from './ids.js';
import type { CheckedEntry, LedgerCheck } from './ledgerCheck.js';
import type { Findings, Value } from './report.js';
import { PlayerTable } from './tables.js';

export class BalanceCheck implements LedgerCheck {
  readonly players = new PlayerTable();
  #rows = 0;

  constructor(private readonly findings: Findings) {}

  async begin({ boundaryPlayers }: Pick<Snapshot, 'boundaryPlayers'>): Promise<void> {
    const { players } = this;
    await boundaryPlayers((row) => {
      const slot = players.slot(row.int(BOUNDARY_PLAYER.partnerId), row.text(BOUNDARY_PLAYER.playerId));
      players.high[slot] = row.word(BOUNDARY_PLAYER.entryId, 0);
      players.low[slot] = row.word(BOUNDARY_PLAYER.entryId, 4);
      players.balance[slot] = row.safe(BOUNDARY_PLAYER.balance);
      players.entries[slot] = row.int(BOUNDARY_PLAYER.entryNumber);
      players.code[slot] = row.int(BOUNDARY_PLAYER.outcomeCode);
      players.firstMs[slot] = timeMsOfWords(
        row.word(BOUNDARY_PLAYER.firstId, 0),
        row.word(BOUNDARY_PLAYER.firstId, 4),
      );
    });
  }

  row(entry: CheckedEntry): void {
    this.#rows++;
    const { players } = this;
    const { kind, number, balance, previousHigh, previousLow } = entry;
    const slot = players.slot(entry.partnerId, entry.playerId);
    const before = players.entries[slot]!;
    if (before === 0) players.firstMs[slot] = entry.timeMs;
    const isNumbered = kind !== undefined && AUDITED_KINDS[kind].isNumbered;
    const expectedNumber = isNumbered ? before + 1 : before;
    const expectedBalance = players.balance[slot]! - entry.wager + entry.credit;
    // Only the first fault of an entry is reported, because later faults are usually consequences.
    if (number !== expectedNumber) {
      const previous = idOf(previousHigh, previousLow);
      this.#found(
        entry,
        "the numbers of the player's entries are not consecutive",
        expectedNumber,
        `${number} (its previous entry is ${previous}; the previous entry in the ledger is ${players.newestId(slot)})`,
      );
    } else if (previousHigh !== players.high[slot] || previousLow !== players.low[slot]) {
      const problem = "the entry does not name the player's previous entry";
      this.#found(entry, problem, players.newestId(slot), idOf(previousHigh, previousLow));
    } else if ((kind === 'opening') !== (before === 0)) {
      const problem = 'the first entry of a player must be an opening, and no later entry may be one';
      this.#found(entry, problem, before === 0 ? '2 (an opening)' : 'any but 2', entry.kindCode);
    } else if (balance !== expectedBalance) {
      this.#found(entry, 'the balance does not follow from the previous balance', expectedBalance, balance);
    }
    players.high[slot] = entry.high;
    players.low[slot] = entry.low;
    players.balance[slot] = balance;
    players.entries[slot] = number;
    players.code[slot] = entry.code;
  }

  #found({ place }: CheckedEntry, problem: string, expected: Value, found: Value): void {
    this.findings.found('balances', problem, place, expected, found);
  }

  end(): void {
    this.findings.looked('balances', 'ledger rows', this.#rows);
    this.findings.looked('balances', 'players in the ledger', this.players.count);
  }
}

/**
 * `spindle verify --history`: checks the complete history of a game in the public log (historyCheck.ts) and
 * prints the faults.
 */
import { writeDurably } from '../platform/files.js';
import { UsageError } from './command.js';
import { HistoryCheck, type HistoryOptions } from './historyCheck.js';
import { printable } from './output.js';
import { type ProofOptions, textOf, verifyOptionsOf } from './verifyProof.js';

const SPINS_MAX = 10_000;
const FAULTS_SHOWN = 1000;

export interface Given extends ProofOptions {
  readonly game?: number;
  readonly keyFile?: string;
  readonly sample?: number;
  readonly state?: string;
}

function optionsOf(file: string | undefined, given: Given): HistoryOptions {
  const { game, url, keyFile, sample = 0, state } = given;
  if (file !== undefined) throw new UsageError("--history can't be combined with FILE");
  if (game === undefined) throw new UsageError('Add --game ID with the id of the game');
  if (url === undefined) throw new UsageError('Add --url URL with the address of the service');
  if (keyFile === undefined) throw new UsageError('Add --key-file FILE with an API key of the partner');
  const key = textOf(keyFile).trim();
  if (!/^ks_[\x21-\x7e]+$/.test(key))
    throw new UsageError(`${keyFile} does not contain a partner key (ks_…)`);
  if (sample > SPINS_MAX) throw new UsageError(`--sample must be at most ${SPINS_MAX}`);
  const { logKeys, policy, sheet, table, rules, seen, labelKey } = verifyOptionsOf({
    ...given,
    url: undefined,
  });
  if (given.spin !== undefined || (seen?.length ?? 0) > 0)
    throw new UsageError("--history can't be combined with --spin or --seen");
  const trust = { logKeys: logKeys ?? [], ...(policy === undefined ? {} : { policy }) };
  const math = {
    ...(sheet === undefined ? {} : { sheet }),
    ...(table === undefined ? {} : { table }),
    ...(rules === undefined ? {} : { rules }),
  };
  return { game, url, key, trust, math, sample, labelKey, state };
}

/** @returns the exit status: 0 if proven, 1 if not */
export async function verifyHistory(file: string | undefined, given: Given): Promise<number> {
  const options = optionsOf(file, given);
  const { faults, state, size, p, reports, spins } = await new HistoryCheck(options).run();
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const isClean = faults.length === 0;
  // The state is saved only after a run without faults, so that the next run finds a fault again.
  if (isClean && options.state !== undefined) await writeDurably(options.state, JSON.stringify(state));
  const shown = faults.slice(0, FAULTS_SHOWN);
  if (faults.length > shown.length) shown.push(`and ${faults.length - shown.length} more`);
  const { places = [], covered = [], voided = [], revealed = 0, sealed = {}, before } = state ?? {};
  const unrevealed = Object.keys(sealed).length;
  if (given.json === true) {
    const counts = {
      records: size,
      entries: places.length - (before?.numbers ?? 0),
      revealed,
      unrevealed,
      reports,
      spins,
    };
    say(
      JSON.stringify({ isProven: isClean, ...counts, before: before ?? null, p: p ?? null, faults: shown }),
    );
    return isClean ? 0 : 1;
  }
  say(`${isClean ? 'PROVEN' : 'NOT PROVEN'}: game ${options.game}, ${size} records in the log`);
  for (const fault of shown) say(`  ${printable(fault)}`);
  if (state === undefined) return 1;
  const ranges = (list: readonly (readonly [number, number])[]): string =>
    list.map(([from, to]) => `${from} to ${to - 1}`).join(', ') || 'none';
  const earlier = before?.numbers ?? 0;
  if (before !== undefined) {
    const numbers =
      earlier === 0 ? 'it has no entries of this game' : `it may have the entries 0 to ${earlier - 1}`;
    const name = printable(before.origin);
    say(`  the log replaced ${name} (${before.size} records), which was not checked; ${numbers}`);
  }
  say(`  ${places.length - earlier} entries; indices ${ranges(covered)}; voided ${ranges(voided)}`);
  say(
    `  ${revealed} blocks revealed, ${unrevealed} not revealed yet; p = ${p?.toPrecision(3) ?? '- (no sheet, or too few outcomes)'}`,
  );
  say(`  ${reports} settlement reports with a checkpoint; ${spins} spins checked`);
  return isClean ? 0 : 1;
}

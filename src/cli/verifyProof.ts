/**
 * `spindle verify`: verifies the proof of a spin, a ticket or a round. It contacts no service except a log,
 * for tiles.
 */
import { readFileSync } from 'node:fs';
import { examine, examineBlock, type VerifyOptions } from '../../verifier/verify.mjs';
import { boundedRequest } from '../platform/runtime/boundedRequest.js';
import { lineOf } from '../platform/secretsInLogs.js';
import { UsageError } from './command.js';
import { printable } from './output.js';
import { verifyRound } from './verifyRound.js';

const TILE_WAIT_MS = 30_000;
const TILE_BYTES_MAX = 8192;

export interface ProofOptions {
  readonly logKey?: string;
  readonly policy?: string;
  readonly sheet?: string;
  readonly table?: string;
  readonly rules?: string;
  readonly spin?: string;
  /**
   * File of the label key, a secret of partner and operator. The key itself is not passed as an argument,
   * because every user of the machine can read arguments.
   */
  readonly labelKeyFile?: string;
  readonly seen?: readonly string[];
  readonly url?: string | undefined;
  readonly json?: boolean;
}

/** Reads a file, or standard input for `-`. */
export function textOf(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${lineOf(error)}`);
  }
}

function jsonOf(file: string): unknown {
  const text = textOf(file);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${lineOf(error)}`);
  }
}

/** Returns a function that reads tiles of a service's log. It requests each tile once. */
function tileReader(url: string): (path: string) => Promise<Uint8Array> {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new UsageError(`«${url}» is not an http:// or https:// address`);
  }
  const tiles = new Map<string, Promise<Uint8Array>>();
  const read = async (path: string): Promise<Uint8Array> => {
    const address = `${url.replace(/\/+$/, '')}/log/${path}`;
    const answer = await boundedRequest(address, { bytesMax: TILE_BYTES_MAX, withinMs: TILE_WAIT_MS });
    if (answer.status !== 200) throw new Error(`${address} answers ${answer.status}`);
    return answer.body;
  };
  return (path) => {
    const tile = tiles.get(path) ?? read(path);
    tiles.set(path, tile);
    return tile;
  };
}

export function verifyOptionsOf(options: ProofOptions): VerifyOptions {
  const { logKey, policy, sheet, table, rules, spin, labelKeyFile, seen, url } = options;
  if (logKey === undefined && policy === undefined)
    throw new UsageError('Give the key of the log: --log-key or --policy');
  return {
    logKeys: logKey === undefined ? [] : [logKey],
    ...(policy === undefined ? {} : { policy: textOf(policy) }),
    ...(sheet === undefined ? {} : { sheet: jsonOf(sheet) }),
    ...(table === undefined ? {} : { table: jsonOf(table) }),
    ...(rules === undefined ? {} : { rules: jsonOf(rules) }),
    ...(spin === undefined ? {} : { spin: jsonOf(spin) }),
    ...(labelKeyFile === undefined ? {} : { labelKey: textOf(labelKeyFile).trim().toLowerCase() }),
    ...(url === undefined ? {} : { readTile: tileReader(url) }),
    seen: (seen ?? []).map(textOf),
  };
}

/** Returns whether the file is an answer of `GET /games/{id}/blocks/{number}` instead of a proof. */
const isBlock = (value: unknown): boolean => value !== null && typeof value === 'object' && 'reveal' in value;

/** Checks that the cards of an ended round follow from its seed. */
function cardFaults(proof: unknown, spin: unknown): string[] {
  const seed = (proof as { shoe?: { seed?: unknown } } | null)?.shoe?.seed ?? null;
  return seed === null || spin === undefined ? [] : verifyRound(spin).map((fault) => `round: ${fault}`);
}

function nameOf(proof: Record<string, unknown>): string {
  const { spinId, roundId, gameId, logIndex, number, fromIndex, toIndex } = proof;
  const at = `log index ${printable(logIndex)}`;
  if (isBlock(proof))
    return `block ${printable(number)}, outcomes ${printable(fromIndex)} to before ${printable(toIndex)}, ${at}`;
  const what = roundId === undefined ? `spin ${printable(spinId)}` : `round ${printable(roundId)}`;
  return `${what}, game ${printable(gameId)}, ${at}`;
}

/** @returns the exit status: 0 if proven, 1 if not */
export async function verifyProofFile(file: string, given: ProofOptions): Promise<number> {
  const options = verifyOptionsOf(given);
  const proof = jsonOf(file);
  const found = isBlock(proof)
    ? { faults: await examineBlock(proof, options), since: undefined }
    : await examine(proof, options);
  const faults = [...found.faults, ...cardFaults(proof, options.spin)];
  const trust = faults.find((fault) => fault.startsWith('trust: '));
  if (trust !== undefined) throw new UsageError(trust.slice('trust: '.length));
  const isProven = faults.length === 0;
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  if (given.json === true) {
    say(JSON.stringify({ isProven, seenInSize: found.since ?? null, faults }));
  } else if (!isProven) {
    say('NOT PROVEN');
    for (const fault of faults) say(`  ${printable(fault)}`);
  } else {
    say(`PROVEN: ${nameOf(proof as Record<string, unknown>)}`);
    say(
      found.since === undefined
        ? "  Logged: the sealed outcome is in the public log, and this result follows from it. The proof alone can't show since when: a checkpoint that you saved before the bet (--seen), or a witness's signature with its own time, would."
        : `  Fixed before you saved the checkpoint of ${found.since} records. That proves something only if you saved it before the bet.`,
    );
  }
  return isProven ? 0 : 1;
}

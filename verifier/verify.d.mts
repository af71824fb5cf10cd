/** What a proof is compared with. Whom to trust must come from elsewhere than the proof. */
export interface VerifyOptions {
  /** vkeys of logs: `NAME+KEYID+KEY`. */
  readonly logKeys?: readonly string[];
  /** Text of a C2SP tlog-policy file: logs, witnesses and the quorum. */
  readonly policy?: string;
  /** The PAR sheet as uploaded, the raffle's prize table, or the table's rules; parsed. */
  readonly sheet?: unknown;
  readonly table?: unknown;
  readonly rules?: unknown;
  /** The answer to the spin, or the round; parsed. */
  readonly spin?: unknown;
  /** The game's label key, 64 lowercase hexadecimal digits. */
  readonly labelKey?: string;
  /** Checkpoints (whole notes) kept from before. */
  readonly seen?: readonly string[];
  /** Reads a tile below the log, such as `tile/0/000.p/3`. */
  readonly readTile?: (path: string) => Promise<Uint8Array>;
}

/** Everything that is wrong, and the size of the earliest kept checkpoint that had the record. */
export function examine(
  proof: unknown,
  options?: VerifyOptions,
): Promise<{ readonly faults: readonly string[]; readonly since: number | undefined }>;

/** Everything that is wrong, one line each; empty: the proof holds. */
export function verify(proof: unknown, options?: VerifyOptions): Promise<readonly string[]>;

/** What a block gives again: the sheet with its `ends` ({@link distributionOf}), or the prize table. */
export interface RevealOptions {
  readonly sheet?: unknown;
  readonly ends?: readonly bigint[];
  readonly table?: unknown;
  /** A faster SHA-256 than WebCrypto's. */
  readonly digest?: (bytes: Uint8Array) => Uint8Array | Promise<Uint8Array>;
}

/** What an entry's text says. */
export interface LogEntry {
  readonly type: 'block' | 'pool' | 'shoes' | 'void' | 'lost';
  readonly gameId: number;
  readonly number: number;
  readonly labelKeyHash: string;
  readonly fromIndex: number;
  readonly count: number;
  readonly fromNumber: number;
  readonly toNumber: number;
  readonly mathHash: string;
  readonly late?: boolean;
}

export interface LogCheckpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: Uint8Array;
}

/** Combination i of a sheet has the probability (ends[i] - ends[i-1]) / ends.at(-1), exactly. */
export function distributionOf(sheet: unknown): readonly bigint[];

/** `spindle slot draw v1`: the combinations that a seed of 32 bytes gives. */
export function drawSlots(ends: readonly bigint[], seed: Uint8Array, count: number): Promise<Uint16Array>;

/**
 * Compares what is revealed of an exhausted block with what was logged of it.
 * @param answer of `GET /games/{id}/blocks/{number}`; with `outcomes` where neither sheet nor table is given
 * @returns `codes` of a slot block or pool that holds
 */
export function checkReveal(
  answer: unknown,
  options?: RevealOptions,
): Promise<{ readonly faults: readonly string[]; readonly codes: Uint16Array | undefined }>;

/**
 * Verifies a block that is revealed: that the log has its entry, and that the entry commits to what its seed gives.
 * @returns everything that is wrong, one line each
 */
export function examineBlock(answer: unknown, options?: VerifyOptions): Promise<readonly string[]>;

/** The entry of such an answer, if it opens a record's commitment (32 bytes, hexadecimal). */
export function openEntry(
  answer: unknown,
  commitment: string | undefined,
): Promise<{ readonly faults: readonly string[]; readonly entry: LogEntry | undefined }>;

/** The checkpoint of a note that a log of the options signed, and their quorum of witnesses. */
export function openCheckpoint(
  note: string,
  options: VerifyOptions,
): Promise<{ readonly faults: readonly string[]; readonly checkpoint: LogCheckpoint | undefined }>;

/** Whether the log that signed a note is that of a checkpoint: what is wrong; undefined: nothing. */
export function compare(
  note: string,
  newest: LogCheckpoint,
  options: VerifyOptions,
): Promise<string | undefined>;

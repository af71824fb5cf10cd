/** Data that a proof is compared with. The trusted keys must come from another source than the proof. */
export interface VerifyOptions {
  /** Verifier keys (vkeys) of trusted logs: `NAME+KEYID+KEY`. */
  readonly logKeys?: readonly string[];
  /** Text of a C2SP tlog-policy file with logs, witnesses and the quorum. */
  readonly policy?: string;
  /**
   * Parsed JSON of the PAR sheet as uploaded, of the raffle's prize table, or of the rules of the blackjack
   * table.
   */
  readonly sheet?: unknown;
  readonly table?: unknown;
  readonly rules?: unknown;
  /** Parsed JSON of the answer to the spin, or of the round. */
  readonly spin?: unknown;
  /** Label key of the game, as 64 lowercase hexadecimal digits. */
  readonly labelKey?: string;
  /** Checkpoints that were kept from earlier, each as a complete note. */
  readonly seen?: readonly string[];
  /** Reads a tile by its path relative to the address of the log, such as `tile/0/000.p/3`. */
  readonly readTile?: (path: string) => Promise<Uint8Array>;
}

/**
 * Verifies a proof. Returns all faults, and the size of the earliest checkpoint of `seen` that contains the
 * record.
 */
export function examine(
  proof: unknown,
  options?: VerifyOptions,
): Promise<{ readonly faults: readonly string[]; readonly since: number | undefined }>;

/** Verifies a proof. Returns one line for each fault, or no lines if the proof is valid. */
export function verify(proof: unknown, options?: VerifyOptions): Promise<readonly string[]>;

/**
 * Data to draw the outcomes of a block again: the PAR sheet with its `ends` ({@link distributionOf}), or the
 * prize table.
 */
export interface RevealOptions {
  readonly sheet?: unknown;
  readonly ends?: readonly bigint[];
  readonly table?: unknown;
  /** SHA-256 function to use instead of WebCrypto, for speed. */
  readonly digest?: (bytes: Uint8Array) => Uint8Array | Promise<Uint8Array>;
}

/** The parsed text of a log entry. */
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

/**
 * Returns the exact distribution of a PAR sheet: combination i has the probability (ends[i] - ends[i-1]) /
 * ends.at(-1).
 */
export function distributionOf(sheet: unknown): readonly bigint[];

/**
 * Repeats the slot draw (`spindle slot draw v1`): returns the combinations that a seed of 32 bytes
 * determines.
 */
export function drawSlots(ends: readonly bigint[], seed: Uint8Array, count: number): Promise<Uint16Array>;

/**
 * Compares the revealed data of an exhausted block with its logged entry.
 *
 * @param answer response of `GET /games/{id}/blocks/{number}`, with `outcomes` if neither sheet nor table is
 * given
 * @returns `codes`: the outcome codes of a slot block or pool, if it is valid
 */
export function checkReveal(
  answer: unknown,
  options?: RevealOptions,
): Promise<{ readonly faults: readonly string[]; readonly codes: Uint16Array | undefined }>;

/**
 * Verifies a revealed block: that the log contains its entry, and that the entry commits to the outcomes that
 * its seed determines.
 *
 * @returns one line for each fault
 */
export function examineBlock(answer: unknown, options?: VerifyOptions): Promise<readonly string[]>;

/**
 * Returns the entry of a block response, if the entry and its salt open the commitment of a log record (32
 * bytes as hexadecimal text).
 */
export function openEntry(
  answer: unknown,
  commitment: string | undefined,
): Promise<{ readonly faults: readonly string[]; readonly entry: LogEntry | undefined }>;

/** Returns the checkpoint of a note that is signed by a log of the options and by the quorum of witnesses. */
export function openCheckpoint(
  note: string,
  options: VerifyOptions,
): Promise<{ readonly faults: readonly string[]; readonly checkpoint: LogCheckpoint | undefined }>;

/**
 * Verifies that a note and a checkpoint belong to the same log. Returns a description of the fault, or
 * undefined if both belong to the same log.
 */
export function compare(
  note: string,
  newest: LogCheckpoint,
  options: VerifyOptions,
): Promise<string | undefined>;

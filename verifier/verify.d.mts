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

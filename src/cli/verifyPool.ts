/**
 * `spindle verify-pool`: proves the pool of a closed raffle from data that the service has revealed. Contacts
 * no service or store.
 */
import { readFileSync } from 'node:fs';
import { type Static, Type } from '#typebox';
import { Compile } from '#typebox/compile';
import { PrizeTableUsd } from '../domain/games/prizeTable.js';
import { poolFaults } from '../domain/games/rafflePool.js';
import { PATTERN_MESSAGES } from '../domain/schema.js';
import { schemaFaults } from '../domain/validation.js';
import { lineOf } from '../platform/secretsInLogs.js';
import { UsageError } from './command.js';
import { printable } from './output.js';

const HEX_32 = '^[0-9a-f]{64}$';
const BASE64 = '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$';
const U32_MAX = 4_294_967_295;
const MESSAGES = {
  ...PATTERN_MESSAGES,
  [HEX_32]: 'must be 32 bytes as 64 lowercase hexadecimal digits',
  [BASE64]: 'must be base64 (RFC 4648, section 4)',
};

const hex32 = () => Type.String({ pattern: HEX_32 });
const { ticketPriceUsd, poolSize, prizes } = PrizeTableUsd.properties;
/**
 * Schema of the data that the proof uses. It is stricter than the service's contract, because every digit
 * matters for the proof.
 */
const Pool = Type.Object({
  gameConfigId: Type.Integer({ minimum: 1, maximum: U32_MAX }),
  ticketPriceUsd,
  poolSize,
  prizes,
  poolCommitment: hex32(),
  reveal: Type.Object({ seed: hex32(), nonce: hex32(), order: Type.String({ pattern: BASE64 }) }),
});
type Pool = Static<typeof Pool>;
const validator = Compile(Pool);

export interface PoolVerdict {
  /** All faults found in the pool. An empty list means that the pool is proven. */
  readonly faults: readonly string[];
  readonly pool: Pool | undefined;
}

/** @param published commitment that was published when the pool was sealed */
export function verifyPool(value: unknown, published?: string): PoolVerdict {
  const wrong = schemaFaults(validator, value, MESSAGES)?.faults ?? [];
  const isOpen = (value as { reveal?: unknown } | null)?.reveal ?? null;
  if (isOpen === null && wrong.every(({ path }) => /^\/(reveal|poolCommitment)$/.test(path))) {
    const fault =
      'This raffle is still open. The data that proves its pool is revealed after the last ticket is sold.';
    return { faults: [fault], pool: undefined };
  }
  if (wrong.length > 0) {
    return { faults: wrong.map(({ path, message }) => `${path || 'The file'} ${message}`), pool: undefined };
  }
  const pool = value as Pool;
  const faults = poolFaults(pool);
  if (published !== undefined && published !== pool.poolCommitment) {
    faults.unshift(
      `this is not the sealed pool: the published commitment is ${published}, but the file has ${pool.poolCommitment}`,
    );
  }
  return { faults, pool };
}

/** @returns the exit status: 0 if proven, 1 if not */
export function verifyPoolFile(
  file: string,
  options: { readonly commitment?: string; readonly json?: boolean },
): number {
  const published = options.commitment?.toLowerCase();
  if (published !== undefined && !new RegExp(HEX_32).test(published)) {
    throw new UsageError('--commitment must be 64 hexadecimal digits');
  }
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8'));
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${lineOf(error)}`);
  }
  const { faults, pool } = verifyPool(value, published);
  const isProven = faults.length === 0;
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  if (options.json === true) {
    const members = { gameConfigId: pool?.gameConfigId, poolCommitment: pool?.poolCommitment };
    say(JSON.stringify({ isProven, isAgainstPublished: published !== undefined, ...members, faults }));
  } else if (!isProven) {
    say('NOT PROVEN');
    for (const fault of faults) say(`  ${printable(fault)}`);
  } else {
    const { gameConfigId, poolSize: size, prizes: table, poolCommitment } = pool!;
    const winning = table.reduce((sum, { count }) => sum + count, 0);
    say(`PROVEN: game ${gameConfigId}, ${size} tickets, ${winning} of them winning`);
    say(`  commitment ${poolCommitment}`);
    say('  The prize table, seed and order match the commitment, and the seed gives this order.');
    say(
      published === undefined
        ? '  Compare this commitment with the one that was published when the pool was sealed, or pass that one with\n' +
            '  --commitment. Only this comparison proves that the pool has not been replaced since.'
        : '  It equals the commitment given with --commitment, so this is the sealed pool.',
    );
  }
  return isProven ? 0 : 1;
}

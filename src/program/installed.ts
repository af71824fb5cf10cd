/** What is decided once for a database: settings that can't change any more, and the operator's key. */
import { join } from 'node:path';
import type { Config } from '../config.js';
import { newKey } from '../domain/apiKey.js';
import { FormatError } from '../domain/formats.js';
import { newBoxKey, SecretBox, UnknownKeyError } from '../domain/secretBox.js';
import { readOrCreateSecret, SetupError } from '../embedded/index.js';
import { SeedKeyError, sealBlocks, useSeedKeys } from '../postgres/blockSeals.js';
import type { Sql } from '../postgres/client.js';
import { type Installation, install, installation } from '../postgres/installation.js';
import { setBindingSeconds } from '../postgres/requestRunReads.js';
import { sealSecrets } from '../postgres/webhooks.js';
import { CELLS_BY_DEFAULT, SEEDS_KEY_FILE } from '../settings.js';

/** Writes the settings of a new database, or reads those of an old one. @throws SetupError where they are others. */
export async function installFixed(sql: Sql, config: Config): Promise<Installation> {
  const { CELLS: cells = CELLS_BY_DEFAULT, IDEMPOTENCY_TTL_S: idempotencyTtlSeconds } = config;
  await install(sql, { cells, idempotencyTtlSeconds });
  const installed = await installation(sql).catch((error: unknown) => {
    throw error instanceof FormatError ? new SetupError(error.message) : error;
  });
  await setBindingSeconds(sql, idempotencyTtlSeconds);
  // Fewer: cells were added since.
  if ((config.CELLS ?? 0) > installed.cells)
    throw new SetupError(
      `CELLS is ${config.CELLS}, but this database has ${installed.cells}; add cells with «spindle cells add»`,
    );
  return installed;
}

/** The key that is given, or the one in the data folder, which is made where it is missing. */
export async function operatorKeyOf(config: Config): Promise<{ operatorKey: string; isNew: boolean }> {
  if (config.OPERATOR_API_KEY !== undefined) return { operatorKey: config.OPERATOR_API_KEY, isNew: false };
  let isNew = false;
  const operatorKey = await readOrCreateSecret(join(config.dataDir, 'operator-api-key'), () => {
    isNew = true;
    return newKey('ks_');
  });
  return { operatorKey, isNew };
}

/**
 * The keys of webhook secrets that are given, or the one in the data folder where the database is there, too. What is in the
 * database is encrypted with the first one from here on.
 * @throws SetupError where a key is missing
 */
export async function openSecrets(sql: Sql, config: Config): Promise<SecretBox> {
  const given = config.WEBHOOK_SECRETS_KEY;
  const file = join(config.dataDir, 'webhook-secrets-key');
  const own = config.DATABASE_URL === undefined ? [await readOrCreateSecret(file, newBoxKey)] : [];
  const box = new SecretBox(given?.split(',') ?? own);
  await sealSecrets(sql, box).catch((error: unknown) => {
    if (!(error instanceof UnknownKeyError)) throw error;
    throw new SetupError(
      `WEBHOOK_SECRETS_KEY lacks the key ${error.keyId}, with which secrets of webhooks in this database are encrypted`,
    );
  });
  return box;
}

/**
 * The keys with which blocks are sealed in the database: those that are given, or the one in the data folder where the database is there,
 * too. What is still to be dealt is sealed with the first one from here on; keys of webhooks open what they sealed before others were given.
 * @throws SetupError where a key is missing
 */
export async function openSeeds(sql: Sql, config: Config): Promise<void> {
  const given = [config.SEEDS_KEY, config.WEBHOOK_SECRETS_KEY].flatMap((keys) => keys?.split(',') ?? []);
  const file = join(config.dataDir, SEEDS_KEY_FILE);
  const own = config.DATABASE_URL === undefined ? [await readOrCreateSecret(file, newBoxKey)] : [];
  useSeedKeys([...given, ...own]);
  await sealBlocks(sql).catch((error: unknown) => {
    throw error instanceof SeedKeyError ? new SetupError(error.message) : error;
  });
}

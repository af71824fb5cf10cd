/** Decides what is fixed once for a database: settings that can't change later, and the operator key. */
import { join } from 'node:path';
import { newKey } from '../../domain/apiKey.js';
import { FormatError } from '../../domain/formats.js';
import { newBoxKey, SecretBox, UnknownKeyError } from '../../domain/secretBox.js';
import {
  blocksSealedWith,
  SeedKeyError,
  sealBlocks,
  useSeedKeys,
} from '../../engine/blocks/blockSeals.store.js';
import { type Installation, install, installation } from '../../engine/recovery/installation.store.js';
import { setBindingSeconds } from '../../engine/requestIds/requestRunReads.store.js';
import type { Sql } from '../../postgres/connection.js';
import { sealSigner } from '../../publicLog/log/publicLog.store.js';
import { sealSecrets } from '../../webhooks/webhooks.store.js';
import type { Config } from '../config.js';
import { readOrCreateSecret, SetupError } from '../embedded/index.js';
import { CELLS_BY_DEFAULT, SEEDS_KEY_FILE } from '../settings.js';

/**
 * Stores the fixed settings of a new database, or reads those of an existing one.
 * @throws SetupError if they contradict the configuration
 */
export async function installFixed(sql: Sql, config: Config): Promise<Installation> {
  const { CELLS: cells = CELLS_BY_DEFAULT, IDEMPOTENCY_TTL_S: idempotencyTtlSeconds } = config;
  await install(sql, { cells, idempotencyTtlSeconds });
  const installed = await installation(sql).catch((error: unknown) => {
    throw error instanceof FormatError ? new SetupError(error.message) : error;
  });
  await setBindingSeconds(sql, idempotencyTtlSeconds);
  // A smaller setting CELLS is accepted, because cells may have been added to the database since.
  if ((config.CELLS ?? 0) > installed.cells)
    throw new SetupError(
      `CELLS is ${config.CELLS}, but this database has ${installed.cells} cells. Lower CELLS, then add cells with «spindle cells add».`,
    );
  return installed;
}

/** Returns the configured operator key, or the one in the data folder, which is created if missing. */
export async function operatorKeyOf(config: Config): Promise<{ operatorKey: string; isNew: boolean }> {
  if (config.OPERATOR_API_KEY !== undefined) return { operatorKey: config.OPERATOR_API_KEY, isNew: false };
  let isNew = false;
  const operatorKey = await readOrCreateSecret(join(config.dataDir, 'operator-api-key'), () => {
    isNew = true;
    return newKey('ks_');
  });
  return { operatorKey, isNew };
}

/** Returns the configured keys for webhook secrets, or the key in the data folder if Postgres is embedded. */
export async function openSecretBox(config: Config): Promise<SecretBox> {
  const given = config.WEBHOOK_SECRETS_KEY;
  const file = join(config.dataDir, 'webhook-secrets-key');
  const own = config.DATABASE_URL === undefined ? [await readOrCreateSecret(file, newBoxKey)] : [];
  return new SecretBox(given?.split(',') ?? own);
}

/**
 * Returns the keys that seal blocks in the database: the configured ones, or the key in the data folder if
 * Postgres is embedded. Keys for webhook secrets are included, because they may have sealed blocks before
 * other keys were configured.
 */
export async function openSeedBox(config: Config): Promise<SecretBox> {
  const given = [config.SEEDS_KEY, config.WEBHOOK_SECRETS_KEY].flatMap((keys) => keys?.split(',') ?? []);
  const file = join(config.dataDir, SEEDS_KEY_FILE);
  const own = config.DATABASE_URL === undefined ? [await readOrCreateSecret(file, newBoxKey)] : [];
  return useSeedKeys([...given, ...own]);
}

const FINISH =
  'Start a worker with both keys, the new key first, so that it encrypts the remaining data with the new key.';

/**
 * Reseals everything in the database with the newest keys: webhook secrets, the log's signing key, and
 * outcomes still to be dealt. Can be repeated.
 * @throws SetupError if a key is missing; the message says what is still sealed with it
 */
export async function sealAll(sql: Sql, secrets: SecretBox): Promise<void> {
  try {
    await sealSecrets(sql, secrets);
    await sealSigner(sql, secrets);
    await sealBlocks(sql);
  } catch (error) {
    if (error instanceof UnknownKeyError)
      throw new SetupError(
        `WEBHOOK_SECRETS_KEY does not contain the key ${error.keyId}, which encrypts webhook secrets in this database. ${FINISH}`,
      );
    if (!(error instanceof SeedKeyError)) throw error;
    const left = await blocksSealedWith(sql, error.keyId);
    throw new SetupError(`${error.message} (${left} of them). ${FINISH}`);
  }
}

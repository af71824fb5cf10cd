/** Writes the service's address to a file, for the command-line tool on the same machine. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { closing } from '../../platform/runtime/service.js';
import type { ServiceGroup } from '../../platform/runtime/serviceGroup.js';
import { localUrl, SERVICE_FILE, type ServiceFile } from '../../platform/serviceFile.js';
import type { Config } from '../config.js';

/**
 * Writes the address only if the service keeps stores or its key in DATA_DIR. The file is removed when the
 * service stops.
 * @param port undefined if this process serves no API
 */
export async function noteAddress(
  { dataDir, HOST, REDIS_URL, DATABASE_URL, OPERATOR_API_KEY, processes }: Config,
  port: number | undefined,
  services: ServiceGroup,
): Promise<void> {
  const isElsewhere = REDIS_URL !== undefined && DATABASE_URL !== undefined && OPERATOR_API_KEY !== undefined;
  if (port === undefined || isElsewhere || processes.isChild) return;
  const file = join(dataDir, SERVICE_FILE);
  const content: ServiceFile = { url: localUrl(HOST, port), pid: process.pid };
  const isWritten = await writeFile(file, JSON.stringify(content), { mode: 0o600 }).then(
    () => true,
    () => false,
  );
  if (isWritten) await services.add(closing('file of the address', () => rm(file, { force: true })));
}

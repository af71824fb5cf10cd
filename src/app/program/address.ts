/** Writes down where the service is, for the command that is run beside it. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { closing } from '../../platform/runtime/service.js';
import type { ServiceGroup } from '../../platform/runtime/serviceGroup.js';
import { localUrl, SERVICE_FILE, type ServiceFile } from '../../platform/serviceFile.js';
import type { Config } from '../config.js';

/** Only where the service keeps something in DATA_DIR: its stores or its key. Removed by the stop. @param port undefined: no API is served */
export async function noteAddress(
  { dataDir, HOST, REDIS_URL, DATABASE_URL, OPERATOR_API_KEY }: Config,
  port: number | undefined,
  services: ServiceGroup,
): Promise<void> {
  const isElsewhere = REDIS_URL !== undefined && DATABASE_URL !== undefined && OPERATOR_API_KEY !== undefined;
  if (port === undefined || isElsewhere) return;
  const file = join(dataDir, SERVICE_FILE);
  const content: ServiceFile = { url: localUrl(HOST, port), pid: process.pid };
  const isWritten = await writeFile(file, JSON.stringify(content), { mode: 0o600 }).then(
    () => true,
    () => false,
  );
  if (isWritten) await services.add(closing('file of the address', () => rm(file, { force: true })));
}

/**
 * Checks the program's own files. They are hashed in a thread that starts while the stores are opened. The
 * hashes are compared before anything is dealt.
 */
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { openThreads } from '../../engine/blocks/threads.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import type { ServiceGroup } from '../../platform/runtime/serviceGroup.js';
import type { Sql } from '../../postgres/connection.js';
import type { Config } from '../config.js';
import { PROGRAM_CHECK_CRON } from '../constants.js';
import { SetupError } from '../embedded/index.js';
import { type CheckFiles, ProgramChangedError, ProgramChecker } from '../oversight/programChecker.js';

interface Parts {
  readonly config: Config;
  readonly log: Logger;
  readonly roles: string;
  readonly now: () => number;
  readonly sql: Sql;
  readonly nodes: RedisNodes;
  readonly events: EventEmitter;
  readonly services: ServiceGroup;
}

/** The hashing thread ends after each check, because the next check is a day later. */
export const checkFilesOf =
  ({ root, workersDir }: Pick<Config, 'root' | 'workersDir'>): CheckFiles =>
  async (part) => {
    const threads = openThreads(join(workersDir, 'checkProgram.js'), 1);
    try {
      return await threads.run({ root, part });
    } finally {
      await threads.destroy();
    }
  };

/** @returns a function that waits for the result, records it and starts the periodic checks */
export function beginProgramCheck(
  config: Config,
  checkFiles = checkFilesOf(config),
): (parts: Parts) => Promise<ProgramChecker> {
  const first = checkFiles('program');
  // An error of the check is ignored here, because a start that fails during the check reports its own error.
  // Otherwise the error is thrown when the result is read.
  first.catch(() => {});
  return async ({ log, roles, now, sql, nodes, events, services }) => {
    const { version, PROGRAM_CHANGED: onChanged, REDIS_URL, DATABASE_URL } = config;
    const check = new ProgramChecker(
      {
        sql,
        nodes,
        checkFiles,
        host: hostname(),
        version,
        roles,
        cron: PROGRAM_CHECK_CRON,
        onChanged,
        now,
        events,
        packagesAfterMs: config.constants.packagesCheckMs,
        operatorEmail: config.OPERATOR_EMAIL,
      },
      first,
    );
    await services.add(check).catch((error: unknown) => {
      throw error instanceof ProgramChangedError ? new SetupError(error.message) : error;
    });
    if (check.verified === -1 && REDIS_URL !== undefined && DATABASE_URL !== undefined)
      log.warn('program files are not verified because there is no manifest.sha256');
    return check;
  };
}

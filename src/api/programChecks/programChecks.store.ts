/**
 * Stores the program checks of all processes permanently. Reports differences in the audit log, in the public
 * log and by e-mail (docs/operations.md).
 */
import type { ProgramCheck } from '../../domain/programCheck.js';
import type { WithDates } from '../../domain/schema.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { recordOperatorEmail } from '../../postgres/partnerEvents.js';
import { safe } from '../../postgres/statements.js';

/** Advisory lock that is held from reading the earlier checks until the commit. */
const CHECK_LOCK = 7_310_045;
/** Minimum time between two e-mails about the same differences, in hours. */
const TOLD_EVERY_HOURS = 24;

export type ProgramIdentity = Pick<ProgramCheckRow, 'version' | 'manifest'>;

export type NewProgramCheck = Omit<ProgramCheckRow, 'checkId' | 'at'>;

export type ProgramCheckRow = WithDates<typeof ProgramCheck, 'at'>;

/**
 * Records the program check of a process. Differences are written to the audit log and e-mailed to the
 * operator. If a process starts with another program than at the previous start, the change is written to the
 * audit log and the public log.
 *
 * @param operatorEmail undefined: no e-mail is sent
 */
export async function recordProgramCheck(
  sql: Sql,
  check: NewProgramCheck,
  operatorEmail: string | undefined,
): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(${CHECK_LOCK})`;
    const [row] = await tx<{ checkId: bigint }[]>`
      INSERT INTO program_checks (host, roles, part, is_start, version, manifest, files, scripts, differing, differences)
      VALUES (${check.host}, ${check.roles}, ${check.part}, ${check.isStart}, ${check.version}, ${check.manifest}, ${check.files},
        ${check.scripts}, ${check.differing}, ${JSON.stringify(check.differences)}::jsonb)
      RETURNING check_id`;
    const checkId = row!.checkId;
    if (check.isStart) await noteProgram(tx, checkId, check);
    if (check.differing > 0) await noteDifferences(tx, checkId, check, operatorEmail);
  });
}

/**
 * Compares this start with the newest earlier start of a process with the same roles, if there is one.
 * Processes with other roles may have other files.
 */
async function noteProgram(
  tx: Transaction,
  checkId: bigint,
  { roles, version, manifest }: NewProgramCheck,
): Promise<void> {
  const [before] = await tx<ProgramIdentity[]>`
    SELECT version, manifest FROM program_checks WHERE is_start AND check_id < ${checkId}
    ORDER BY roles = ${roles} DESC, check_id DESC LIMIT 1`;
  if (before !== undefined && before.version === version && before.manifest === manifest) return;
  await writeAuditEntry(tx, {
    actor: 'worker',
    action: 'program.change',
    subject: 'program',
    ...(before === undefined ? {} : { before }),
    after: { version, manifest },
  });
  const body = { type: 'program', version, manifest, at: new Date().toISOString() };
  await tx`
    INSERT INTO log_notices (name, body) VALUES (${`program ${checkId}`}, ${JSON.stringify(body)}::jsonb)`;
}

async function noteDifferences(
  tx: Transaction,
  checkId: bigint,
  { host, version, manifest, part, differing, differences }: NewProgramCheck,
  operatorEmail: string | undefined,
): Promise<void> {
  await writeAuditEntry(tx, {
    actor: 'worker',
    action: 'program.check-failed',
    subject: `process:${host}`,
    after: { version, manifest, part, differing, differences },
  });
  if (operatorEmail === undefined) return;
  // A process that restarts repeatedly causes only one e-mail.
  const told = await tx`
    SELECT 1 FROM program_checks
    WHERE check_id < ${checkId} AND at > now() - ${TOLD_EVERY_HOURS} * interval '1 hour' AND host = ${host} AND part = ${part}
      AND manifest = ${manifest} AND differences = ${JSON.stringify(differences)}::jsonb LIMIT 1`;
  if (told.length > 0) return;
  const paths = differences.map(({ path }) => path);
  const data = { host, version, manifest, differing, paths };
  await recordOperatorEmail(tx, 'program.check_failed', data, operatorEmail);
}

export class ProgramChecks {
  constructor(private readonly sql: Sql) {}

  async page(page: number, limit: number): Promise<{ checks: ProgramCheckRow[]; total: number }> {
    const rows = await this.sql<(Omit<ProgramCheckRow, 'checkId'> & { checkId: bigint })[]>`
      SELECT check_id, at, host, roles, part, is_start, version, manifest, files, scripts, differing, differences
      FROM program_checks ORDER BY check_id DESC LIMIT ${limit} OFFSET ${(page - 1) * limit}`;
    const [count] = await this.sql<{ total: bigint }[]>`SELECT count(*) AS total FROM program_checks`;
    return {
      checks: rows.map((row) => ({ ...row, checkId: safe(row.checkId) })),
      total: safe(count!.total),
    };
  }
}

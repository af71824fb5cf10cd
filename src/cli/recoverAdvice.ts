/**
 * `spindle recover` without options: looks at the stores and the copies outside them, says what happened and
 * what each way out keeps and costs, and recommends one.
 */
import { entryTimeMs } from '../domain/entryId.js';
import { cellLeases } from '../engine/cells/cells.store.js';
import { findObstacles, type Obstacles } from '../engine/recovery/obstacles.store.js';
import type { CopySetting } from '../engine/recovery/outsideCopies.store.js';
import { type FoundPosition, findPosition } from '../engine/recovery/positionDifference.js';
import type { Position } from '../engine/recovery/positionFile.js';
import { openFinding, type PositionDifference } from '../engine/recovery/positionFindings.store.js';
import {
  RESTORED_COMMAND,
  type RestoreCosts,
  restoreCosts,
  waitingText,
} from '../engine/recovery/restoreCosts.js';
import type { RedisNodes } from '../engine/redis/nodes.js';
import type { Sql } from '../postgres/connection.js';
import type { StoreUrls } from './command.js';
import { openStores } from './openPostgres.store.js';
import { type CellState, check } from './recover.js';

export interface Choice {
  readonly command: string;
  /** Condition under which the choice is right. */
  readonly when: string;
  readonly keeps: string;
  readonly costs: string;
}

export interface Advice {
  readonly happened: readonly string[];
  readonly choices: readonly Choice[];
  /** Command or action; undefined if nothing needs to be done. */
  readonly recommended: string | undefined;
  readonly why: string;
}

const COUNTED_WITHIN_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Describes the time that Postgres lacks according to a position file. */
async function lackedTime(sql: Sql, position: Position): Promise<string | undefined> {
  let [from, to] = [0, 0];
  for (const { cell, cursorId } of await cellLeases(sql)) {
    const known = position.cells[cell];
    if (known === undefined || BigInt(known.bookedId) <= cursorId || cursorId === 0n) continue;
    if (entryTimeMs(BigInt(known.bookedId)) - entryTimeMs(cursorId) <= to - from) continue;
    [from, to] = [entryTimeMs(cursorId), entryTimeMs(BigInt(known.bookedId))];
  }
  if (to === 0) return undefined;
  const hours = (to - from) / HOUR_MS;
  const long = hours < 48 ? `${hours.toFixed(1)} hours` : `${(hours / 24).toFixed(1)} days`;
  return `Postgres lacks the entries from ${new Date(from).toISOString()} to ${new Date(to).toISOString()} (${long})`;
}

const waits = (command: string, when: string): Choice => ({
  command,
  when,
  keeps: 'everything',
  costs: 'nothing',
});

function restoredChoice({ waiting, plan }: RestoreCosts, when: string): Choice {
  return {
    command: `npx ${RESTORED_COMMAND}`,
    when,
    keeps: 'what is in Postgres',
    costs:
      `${waitingText(waiting)} that wait in Redis are discarded; ${plan.outcomes} undealt outcomes in ` +
      `${plan.blocks} blocks are voided; ${plan.rounds} open rounds are voided, and their stakes refunded; ` +
      `${plan.raffleCount} raffles are suspended`,
  };
}

const keepChoice = ({ waiting }: RestoreCosts, setting: CopySetting): Choice => ({
  command: `npx spindle recover --without ${setting}`,
  when: 'Postgres has its newest state: the archive was whole, the standby synchronous, or it was never restored',
  keeps: `everything, also ${waitingText(waiting)} that wait in Redis`,
  costs: 'nothing. If Postgres has an older state after all, outcomes that players have seen are dealt again',
});

const importChoice = (place: string): Choice => ({
  command: `npx spindle log import --from ${place}`,
  when: 'Postgres was restored. The command does the same as --restored, too, so no second one is needed',
  keeps: 'the public log with all its proofs',
  costs: 'the same as --restored',
});

const NOTHING = { choices: [], recommended: undefined } as const;

/** What the service found by itself, and what this command finds. */
interface Facts {
  readonly cells: readonly CellState[];
  readonly obstacles: Obstacles;
  readonly found: FoundPosition;
  readonly costs: RestoreCosts;
  readonly logCopy: string;
}

const stateIs = (state: string) => (cell: CellState) => cell.state === state;
const namesOf = (cells: readonly CellState[]): string => cells.map(({ cell }) => cell).join(', ');

/** Whether what Redis has shows that Postgres has all that was ever committed. */
const redisAgrees = ({ cells, costs }: Facts): boolean =>
  costs.waiting !== undefined && cells.every(({ state }) => state === 'ready' || state === 'new');

/** Returns the way out of a restore, or of a copy that can't be used. */
function adviseOnCopies(
  facts: Facts,
  open: PositionDifference | undefined,
): Omit<Advice, 'happened'> | undefined {
  const { obstacles, costs, logCopy, cells, found } = facts;
  const isOlder = open?.mayBeNewest === false || cells.some(({ note }) => OLDER.test(note));
  const restored = restoredChoice(costs, 'no newer state of Postgres can be restored');
  if (obstacles.hold?.startsWith('log: ') === true)
    return {
      choices: [importChoice(logCopy)],
      recommended: importChoice(logCopy).command,
      why: 'The published log has records that Postgres lacks, so Postgres is in an older state.',
    };
  if (isOlder)
    return {
      choices: [waits('restore a newer state of Postgres', 'there is one'), restored],
      recommended: restored.command,
      why: 'Postgres is certain to lack something. Run the command once you know that no newer state is left.',
    };
  const missing = facts.obstacles.missingCopies;
  const isLogCopy = missing.some(({ message }) => message.startsWith('LOG_COPY_DIR'));
  const isPosition =
    found.fault !== undefined || missing.some(({ message }) => message.startsWith('POSITION_FILE'));
  if (open === undefined && !isLogCopy && !isPosition) return undefined;
  const isOfPosition = open !== undefined || isPosition;
  const keep = keepChoice(costs, isOfPosition ? 'POSITION_FILE' : 'LOG_COPY_DIR');
  const other = isLogCopy
    ? importChoice('MIRROR')
    : { ...restored, when: 'Postgres may have an older state' };
  const back = waits('put the copy back', 'it is only in another place, or an intact one is left');
  const [recommended, why] = redisAgrees(facts)
    ? [keep.command, 'Redis is intact, and Postgres has all that Redis knows to be committed.']
    : [other.command, 'Redis can’t show that Postgres has its newest state. This command is always safe.'];
  return { choices: [...(open === undefined ? [back] : []), keep, other], recommended, why };
}

const OLDER = /Postgres was restored from an older copy/;

function adviseOnCells({ cells }: Facts): Omit<Advice, 'happened'> {
  const halted = cells.filter(stateIs('halted'));
  if (halted.length > 0) {
    const resume = halted.map(({ cell }) => `--resume ${cell}`).join(' ');
    return {
      choices: [waits(`npx spindle recover ${resume}`, 'you have examined the reason, and removed it')],
      recommended: 'npx spindle audit',
      why: `First find out why: runbook.md, SpindleCellHalted. Then: npx spindle recover ${resume}`,
    };
  }
  const foreign = cells.filter(stateIs('foreign'));
  if (foreign.length > 0)
    return {
      choices: [
        waits('correct REDIS_URL', 'it leads to the Redis of another installation'),
        {
          command: 'npx spindle recover --replace',
          when: 'this Redis belongs to this installation, and what it has may go',
          keeps: 'what is in Postgres',
          costs: `the data of cells ${namesOf(foreign)} in Redis`,
        },
      ],
      recommended: 'check REDIS_URL',
      why: 'Nothing is lost while you look.',
    };
  const lost = cells.filter(({ state }) => state === 'lost' || state === 'promoted');
  if (lost.length > 0)
    return {
      choices: [
        waits('start a worker', 'none runs. It rebuilds the cells by itself'),
        waits('npx spindle recover --rebuild', 'the cells are to be ready before a worker starts'),
      ],
      recommended: 'start a worker',
      why: 'Everything that Postgres has is rebuilt in Redis.',
    };
  return { ...NOTHING, why: 'The stores agree, and nothing waits for a decision.' };
}

/** @param logCopy LOG_COPY_DIR, or a word in its place */
async function advise(
  sql: Sql,
  nodes: RedisNodes,
  { positionFile, logCopy }: { readonly positionFile: string | undefined; readonly logCopy: string },
): Promise<Advice> {
  const found = await findPosition(sql, positionFile);
  const [obstacles, cells] = [await findObstacles(sql), await check(sql, nodes)];
  const open = found.difference ?? (await openFinding(sql));
  const facts = {
    cells,
    obstacles,
    found,
    costs: await restoreCosts(sql, nodes, COUNTED_WITHIN_MS),
    logCopy,
  };
  const lacked =
    found.difference !== undefined && found.position !== undefined
      ? await lackedTime(sql, found.position)
      : undefined;
  const unfit = [...new Set(cells.map(({ note }) => note))].filter((note) => note !== '');
  const isNamed = obstacles.missingCopies.some(({ message }) => message.startsWith('POSITION_FILE'));
  const damage =
    found.fault === undefined || isNamed ? [] : [`${found.fault}. A worker that deals writes it again`];
  const held = obstacles.hold?.startsWith('log: ') === true ? [obstacles.hold] : [];
  return {
    happened: [
      ...held,
      ...(open === undefined ? [] : [open.text]),
      ...(lacked === undefined ? [] : [lacked]),
      ...obstacles.missingCopies.map(({ message }) => message.replace(/\. (Put|Make) it .*/, '')),
      ...damage,
      ...unfit.map(
        (note) => `Cells ${namesOf(cells.filter((cell) => cell.note === note))} in Redis: ${note}`,
      ),
      `Redis has ${waitingText(facts.costs.waiting)} that Postgres lacks`,
    ],
    ...(adviseOnCopies(facts, open) ?? adviseOnCells(facts)),
  };
}

function adviceText({ happened, choices, recommended, why }: Advice): string {
  const lines = ['What this command found:', ...happened.map((line) => `  ${line}.`)];
  if (choices.length > 0) lines.push('', 'What you can do:');
  for (const [i, { command, when, keeps, costs }] of choices.entries())
    lines.push(`  ${i + 1}. ${command}`, `     if ${when}`, `     keeps: ${keeps}`, `     costs: ${costs}`);
  lines.push(
    '',
    recommended === undefined ? 'Nothing needs to be done.' : `Recommended: ${recommended}`,
    why,
  );
  return lines.join('\n');
}

/** @returns the exit status: 0 if nothing needs to be done, 1 if something does */
export async function adviseOnRecovery(
  urls: StoreUrls,
  options: { readonly positionFile: string | undefined; readonly logCopy: string; readonly json: boolean },
): Promise<number> {
  const { sql, nodes } = await openStores(urls);
  try {
    const advice = await advise(sql, nodes, options);
    process.stdout.write(`${options.json ? JSON.stringify(advice) : adviceText(advice)}\n`);
    return advice.recommended === undefined ? 0 : 1;
  } finally {
    nodes.close();
    await sql.end();
  }
}

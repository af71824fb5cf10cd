/**
 * Tests `--reason` of each command whose reason the audit log keeps. The built program runs against a
 * service.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { world } from '../setup/world.js';
import { OPERATOR_KEY } from '../support/client.js';
import { cliOf, ROOT } from '../support/root.js';
import { dealUntil, newTable } from '../support/rounds.js';
import { parSheet } from '../support/sheets.js';

interface Entry {
  readonly action: string;
  readonly after: { readonly reason?: string } | null;
}

const { service } = world({ CELLS: '2' });
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'spindle-reasons-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
});

/** @throws Error if the command does not exit with 0 */
const cli = (...args: string[]) =>
  promisify(execFile)(process.execPath, [cliOf(ROOT), ...args], {
    env: { PATH: process.env.PATH, SPINDLE_URL: service.base, OPERATOR_API_KEY: OPERATOR_KEY },
  });

test('spindle records the --reason of each command in the audit log', async () => {
  const { partnerId, key } = await service.newPartner({ cell: 0 });
  const id = String(partnerId);
  const gameId = String(await service.newGame(key, parSheet('classic-3-reel')));
  const { body: games } = await service.operator<{ parSheetId: number }>('GET', `/games/${gameId}`);
  const { body: second } = await service.operator('POST', `/partners/${id}/keys`, {});
  const table = await newTable(service, partnerId);
  const { roundId } = await dealUntil(service, key, table, 'carol', ({ status }) => status === 'OPEN');
  await service.operator('POST', '/operators', { name: 'jane', role: 'auditor' });
  const rules = join(folder, 'rules.json');
  const tiers = [{ tierLevel: 1, tierName: 'One', triggerAtSpins: 100, amountUsd: '1.00' }];
  const percents = { triggerSplitPct: 100, communitySplitPct: 0 };
  writeFileSync(rules, JSON.stringify({ enabled: true, triggerInterval: 10, ...percents, tiers }));
  const today = new Date().toISOString().slice(0, 10);

  const commands: readonly (readonly [action: string, ...args: string[]])[] = [
    ['partner.update', 'partner', 'update', id, '--spin-rate-limit', '77'],
    ['partner.move', 'partner', 'move', id, '--cell', '1'],
    ['cell.drain', 'cells', 'drain', '0'],
    ['key.revoke', 'key', 'revoke', id, String(second.keyId), '--yes'],
    ['game.update', 'game', 'suspend', gameId, '--yes'],
    ['game.update', 'game', 'resume', gameId],
    ['communal.set', 'communal', 'set', gameId, '--rules', rules],
    ['par-sheet.update', 'sheet', 'retire', String(games.parSheetId), '--yes'],
    ['round.close', 'round', 'close', roundId, '--yes'],
    ['settlement.generate', 'settlement', 'make', id, today],
    ['operator.rotate-key', 'operator', 'rotate', 'jane', '--yes'],
    ['operator.revoke', 'operator', 'revoke', 'jane', '--yes'],
    ['api-version.deprecate', 'api', 'deprecate', 'v1', '--sunset', '2099-01-01', '--yes'],
    ['partner.update', 'partner', 'deactivate', id, '--yes'],
  ];
  for (const [place, [action, ...args]] of commands.entries()) {
    const reason = `reason ${place}`;
    await cli(...args, '--reason', reason);
    const { body } = await service.operator<{ entries: Entry[] }>('GET', '/audit-log?limit=20');
    expect(
      body.entries.filter(({ after }) => after?.reason === reason).map((entry) => entry.action),
      args.join(' '),
    ).toEqual([action]);
  }
});

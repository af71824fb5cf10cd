/**
 * Tests the service against the reference model of test/model/everything/ with random sequences of all
 * commands. Data that the service returns is compared after each command. EVERYTHING_SEQUENCES sets the
 * number of sequences and EVERYTHING_SEED selects them.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { auditFindings } from '../support/communal.js';
import type { TestStores } from '../support/stores.js';
import { runEverything } from './everything/run.js';
import { newWorld } from './everything/world.js';

const SEQUENCES_DEFAULT = 200;
const SEQUENCES = Number(process.env.EVERYTHING_SEQUENCES ?? SEQUENCES_DEFAULT);
const SEED = Number(process.env.EVERYTHING_SEED ?? 2);
const SHRINK_MS = 60_000;
const WANTED = [
  ...['spin 200', 'spin replayed', 'spin 409 KS-4111', 'spin 400 KS-4103', 'spin 400 KS-4225'],
  ...['misnamed id 400 KS-4101', 'ticket 200', 'ticket replayed', 'deal 201', 'deal 400 KS-4101'],
  ...['adjust 200', 'adjust 400 KS-4225', 'block 200', 'suspend 200', 'move 202', 'issue key 201'],
  ...[
    'report 201',
    'judge report 200',
    'set bonus 200',
    'fund 200',
    'act 200',
    'void 200',
    'restart, met',
    'release, met',
    'refusal, met',
  ],
];

describe('the service behaves like the reference model of all commands', {
  timeout: 600_000 + SEQUENCES * 2000,
}, () => {
  let stores: TestStores;
  beforeAll(async () => {
    stores = await freshStores();
  });
  afterAll(() => stores.drop());

  test('random sequences of all commands match the reference across restarts, releases of request ids and refused writes', async () => {
    const world = await newWorld(stores);
    try {
      const options = {
        seed: SEED,
        bounds: { min: 5, max: 15 },
        atOnce: 8,
        eventEvery: 500,
        shrinkMs: SHRINK_MS,
      };
      await runEverything(world, { ...options, sequences: SEQUENCES });
      // The sequences must reach every wanted situation, or else this test proves nothing.
      if (SEQUENCES >= SEQUENCES_DEFAULT) expect(WANTED.filter((what) => !world.seen.has(what))).toEqual([]);
      expect(await auditFindings(stores)).toEqual([]);
    } finally {
      await world.end();
    }
  });
});

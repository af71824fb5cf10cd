/**
 * Test projects: tests without a server (`*.unit.test.ts`), tests that run the service on real stores, and
 * tests that kill, stop, slow down, disconnect or restore running processes.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Test files of `npm run test:faults`. Each takes long or occupies the two cores of a small machine. */
const FAULTS = `
  books/archive/communalDrop
  history/history
  engine/cells/{acknowledgement,bindingTimes,cuts,moreCells,moveLocks,stoppedFrontEnd}
  client/killed
  engine/cluster/cluster
  engine/communal/communalKills
  console/{console,operations,outages,oversight}
  docs/pages
  app/embedded/{shutdown,signals,start}
  app/program/frontEnds
  api/server/{pausedFrontEnd,refusals,revocation,storeAway}
  engine/ledger/{bounds,outages,postgresDurability,sharing,stalledFlush}
  model/{everything,model}
  engine/blackjack/roundKills
  engine/recovery/*
  takeover/takeover
  publicLog/log/{covered,imported,importedCopies,restored,verifyPage,witnesses}
  engine/upgrade/upgrade
  webhooks/webhookCrash
`
  .trim()
  .split(/\s+/)
  .map((name) => `test/${name}.test.ts`);

/** The slowest test files, slowest first, so that none of them runs alone at the end. */
const LONGEST = `
  raffles audit package limits wire adjustments idempotency partnerSide embedded freedBlocks raffleVoid
  strangers rotate money dealing ledger cli batcher communal email exact webhooks client logs
  partitionsAhead restored bounds importedCopies everything failpoints refusals cluster witnesses
  recovery positionFile model signals bindingTimes recoverCommand start revocation cuts moreCells pages
  shutdown acknowledgement moveLocks
`
  .trim()
  .split(/\s+/);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return at < 0 ? LONGEST.length : at;
    };
    // A worker loads the program again when its next file belongs to another project, so the files are
    // ordered by project.
    const projects = ['tidy', 'unit', 'node-http', 'service', 'faults'];
    const turn = ({ project }: TestSpecification): number => projects.indexOf(project.name);
    return (await super.sort(files)).sort((a, b) => turn(a) - turn(b) || place(a) - place(b));
  }
}

/** Returns the test files whose text matches a pattern. */
const filesWith = (pattern: RegExp): string[] =>
  readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/${name}`)
    .filter((file) => pattern.test(readFileSync(file, 'utf8')));

const UNIT = 'test/**/*.unit.test.ts';
/** Test files of `npm run check`, which is not part of `npm test`. */
const TIDY = 'test/tidy/*.unit.test.ts';
const shared = {
  // A worker loads the program once instead of once for each file, which saves a tenth of the total time.
  isolate: false,
  pool: 'forks' as const,
};
const computing = {
  testTimeout: 120_000,
  // These tests compute without waiting, so one runs on each core, before the other tests.
  maxWorkers: 2,
  sequence: { groupOrder: 0 },
};
const onStores = {
  // Four workers share two cores, because these tests often wait for a disk, a lease or a deadline.
  maxWorkers: 4,
  sequence: { groupOrder: 1 },
  globalSetup: ['test/setup/servers.ts'],
  // The timeouts only end tests that would never finish. The duration of a test depends on the machine and on
  // its load.
  testTimeout: 240_000,
  hookTimeout: 240_000,
};

/**
 * `npm run test:scale` runs all tests with large numbers, and `npm run test:time` all tests that check
 * durations, one file at a time.
 */
const IS_WHOLE = process.env.SCALE === 'whole';
const wholeProjects = [
  { test: { ...shared, ...onStores, name: 'scale', include: filesWith(/\bIS_WHOLE\b/) } },
  {
    test: {
      ...shared,
      ...onStores,
      name: 'time',
      include: [...filesWith(/\b(expectWithin|timeoutFor)\(/), 'test/model/model.test.ts'],
      maxWorkers: 1,
      sequence: { groupOrder: 3 },
    },
  },
];

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    // Time limit for the stop of the stores at the end of the run, because they end in order.
    teardownTimeout: 60_000,
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: [UNIT],
          exclude: [...configDefaults.exclude, TIDY],
          ...computing,
        },
      },
      { test: { ...shared, name: 'tidy', include: [TIDY], ...computing } },
      {
        test: {
          ...shared,
          ...onStores,
          name: 'service',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, UNIT, ...FAULTS],
        },
      },
      {
        test: {
          ...shared,
          ...onStores,
          name: 'faults',
          include: FAULTS,
          exclude: [...configDefaults.exclude, UNIT],
          // Tests that stop or break only processes that they started themselves. More concurrent tests would
          // wait for each other's cores.
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      // Runs the tests of the wire protocol again on the HTTP server of Node.
      {
        test: {
          ...shared,
          ...onStores,
          name: 'node-http',
          include: ['test/api/server/{wire,framing,heads,incomingBodies,strangers,helpfulErrors}.test.ts'],
          env: { HTTP_SERVER: 'node' },
        },
      },
      ...(IS_WHOLE ? wholeProjects : []),
      // The mutation tests take a minute: `npm run test:mutation`.
      {
        test: {
          ...shared,
          ...onStores,
          name: 'mutation',
          include: ['test/mutation/{mutation,rounds,cluster,suite}.ts'],
        },
      },
      // The referee tests need Go: `npm run test:referees`.
      { test: { ...shared, ...onStores, name: 'referees', include: ['test/referees/referees.ts'] } },
    ],
  },
});

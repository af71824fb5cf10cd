/**
 * The tests: those that need no server (`*.unit.test.ts`), those that run the service on real stores, and those that end, stop,
 * starve, cut off or restore what runs.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Of `npm run test:faults`: each of its files takes long, or gives the two cores of a small machine much to do. */
const FAULTS = `
  books/archive/communalDrop
  history/history
  engine/cells/{acknowledgement,bindingTimes,cuts,moreCells,moveLocks,stoppedFrontEnd}
  client/killed
  engine/cluster/cluster
  engine/communal/communalKills
  console/{console,operations,oversight}
  docs/pages
  app/embedded/{shutdown,signals,start}
  api/server/{refusals,revocation,storeAway}
  engine/ledger/{bounds,outages,postgresDurability,sharing,stalledFlush}
  model/{everything,model}
  engine/blackjack/roundKills
  engine/recovery/*
  takeover/takeover
  publicLog/log/{covered,verifyPage,witnesses}
  engine/upgrade/upgrade
  webhooks/webhookCrash
`
  .trim()
  .split(/\s+/)
  .map((name) => `test/${name}.test.ts`);

/** The files that take longest, longest first: none of them is left alone at the end. */
const LONGEST = `
  raffles audit limits wire adjustments idempotency partnerSide embedded freedBlocks raffleVoid
  strangers rotate money dealing ledger cli batcher communal email exact webhooks client logs partitionsAhead
  bounds everything failpoints refusals cluster witnesses recovery positionFile model signals
  bindingTimes recoverCommand start revocation cuts moreCells pages shutdown acknowledgement moveLocks
`
  .trim()
  .split(/\s+/);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return at < 0 ? LONGEST.length : at;
    };
    // A worker loads the program anew where its next file is of another project.
    const projects = ['tidy', 'unit', 'node-http', 'service', 'faults'];
    const turn = ({ project }: TestSpecification): number => projects.indexOf(project.name);
    return (await super.sort(files)).sort((a, b) => turn(a) - turn(b) || place(a) - place(b));
  }
}

/** The test files whose text has a match. */
const filesWith = (pattern: RegExp): string[] =>
  readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/${name}`)
    .filter((file) => pattern.test(readFileSync(file, 'utf8')));

const UNIT = 'test/**/*.unit.test.ts';
/** Of `npm run check`, which is no part of `npm test`. */
const TIDY = 'test/tidy/*.unit.test.ts';
const shared = {
  // A worker loads the program once, not once for each file: that was a tenth of all the time.
  isolate: false,
  pool: 'forks' as const,
};
const computing = {
  testTimeout: 120_000,
  // They compute and do not wait: one for each core, before the others.
  maxWorkers: 2,
  sequence: { groupOrder: 0 },
};
const onStores = {
  // On two cores: much of the time they wait for a disk, a lease or a deadline.
  maxWorkers: 4,
  sequence: { groupOrder: 1 },
  globalSetup: ['test/setup/servers.ts'],
  // They only end what would never come: how fast it comes depends on the machine and on what else runs on it.
  testTimeout: 240_000,
  hookTimeout: 240_000,
};

/** `npm run test:scale` runs all that takes great numbers, `npm run test:time` all that holds times, one file at a time. */
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
    // The stores of the run are ended in order.
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
          // They break what they started themselves; with more of them at once each would wait for the others' cores.
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      // The wire once more, on the other HTTP server.
      {
        test: {
          ...shared,
          ...onStores,
          name: 'node-http',
          include: ['test/api/server/{wire,framing,incomingBodies,strangers,helpfulErrors}.test.ts'],
          env: { HTTP_SERVER: 'node' },
        },
      },
      ...(IS_WHOLE ? wholeProjects : []),
      // A minute of its own: `npm run test:mutation`.
      {
        test: {
          ...shared,
          ...onStores,
          name: 'mutation',
          include: ['test/mutation/{mutation,rounds,cluster,suite}.ts'],
        },
      },
      // Needs Go: `npm run test:referees`.
      { test: { ...shared, ...onStores, name: 'referees', include: ['test/referees/referees.ts'] } },
    ],
  },
});
